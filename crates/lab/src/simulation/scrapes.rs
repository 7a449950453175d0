//! Metrics pages on their way to the gateways.

use std::time::Duration;

use types::Timestamp;

use super::{Event, Simulation};

/// Time that an engine's server takes to render its metrics page.
const PAGE_RENDERING: Duration = Duration::from_millis(2);
/// How long a gateway waits for one.
const TIMEOUT: Duration = Duration::from_secs(1);

impl Simulation<'_> {
    pub(super) fn begin_scrape(&mut self, gateway: u16, endpoint: u32, now: Timestamp) {
        if !self.gateways[usize::from(gateway)].begin_scrape(endpoint as usize, now) {
            return;
        }
        let network = self.settings.network;
        let condition = &self.endpoints[endpoint as usize].condition;
        if condition.is_dead {
            self.order(now + network * 2, Event::ScrapeEnd { gateway, endpoint });
            return;
        }
        let takes = network + PAGE_RENDERING + condition.page_delay;
        if condition.has_no_pages || takes + network > TIMEOUT {
            self.order(now + TIMEOUT, Event::ScrapeEnd { gateway, endpoint });
            return;
        }
        self.order(now + takes, Event::ScrapePage { gateway, endpoint });
    }

    /// The engine renders its page.
    pub(super) fn render_page(&mut self, gateway: u16, endpoint: u32, now: Timestamp) {
        let home = &self.endpoints[endpoint as usize];
        let page = (!home.condition.is_dead).then(|| home.rendered(now));
        let place = self.page_place(gateway, endpoint);
        self.pages[place] = page;
        self.order(now + self.settings.network, Event::ScrapeEnd { gateway, endpoint });
    }

    pub(super) fn end_scrape(&mut self, gateway: u16, endpoint: u32, now: Timestamp) {
        let place = self.page_place(gateway, endpoint);
        let page = self.pages[place].take();
        let next = self.gateways[usize::from(gateway)].end_scrape(endpoint as usize, page, now);
        self.order(next, Event::ScrapeBegin { gateway, endpoint });
        self.pump(now);
    }

    fn page_place(&self, gateway: u16, endpoint: u32) -> usize {
        usize::from(gateway) * self.endpoints.len() + endpoint as usize
    }
}
