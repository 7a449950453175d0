//! Other settings while requests wait.

use super::Queue;
use crate::band::Band;
use crate::config::Config;

impl<T> Queue<T> {
    /// Takes over other settings. Nothing queued is lost: what no longer fits stays until it goes, and
    /// its time runs as before. O(n log n).
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
        for (priority, band) in &mut self.bands {
            let config = self.config.band(*priority);
            let is_same_order =
                band.config.fairness == config.fairness && band.config.ordering == config.ordering;
            if is_same_order {
                band.config = config.clone();
                continue;
            }
            let mut made = Band::new(config.clone());
            (made.held, made.promised) = (band.held, band.promised);
            (made.owed, made.arrivals) = (band.owed, band.arrivals);
            let own =
                self.store.iter_mut().filter(|(_, item)| item.work.flow.priority == *priority);
            for (place, item) in own {
                item.key = made.order_key(item);
                let is_fresh = item.returned.is_none();
                let key = (item.key, item.number);
                item.flow = made.flows.push(
                    &item.work.flow.id,
                    key,
                    (place, is_fresh),
                    item.held,
                    self.now,
                );
            }
            for promise in self.promises.iter().filter(|other| other.flow.priority == *priority) {
                made.flows.promise(&promise.flow.id, promise.held, self.now);
            }
            *band = made;
        }
    }
}
