//! What a list that begins anew no longer has is gone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kube::runtime::watcher::Event;

use super::Source;

pub(super) type Place = (Arc<str>, Arc<str>);

/// Who is there by each watch.
#[derive(Debug, Default)]
pub(super) struct Lists {
    known: HashMap<Source, HashSet<Place>>,
    /// Seen in the list that is under way.
    listed: HashMap<Source, HashSet<Place>>,
    whole: HashSet<Source>,
}

impl Lists {
    /// What an event says: objects that are there or changed, and places of those that are gone.
    pub(super) fn sort<K>(
        &mut self,
        source: Source,
        event: Event<K>,
        place: impl Fn(&K) -> Place,
    ) -> (Option<K>, Vec<Place>) {
        let known = self.known.entry(source).or_default();
        match event {
            Event::Init => {
                self.listed.insert(source, HashSet::new());
                (None, Vec::new())
            }
            Event::InitApply(object) => {
                let place = place(&object);
                known.insert(place.clone());
                self.listed.entry(source).or_default().insert(place);
                (Some(object), Vec::new())
            }
            Event::InitDone => {
                self.whole.insert(source);
                let listed = self.listed.remove(&source).unwrap_or_default();
                let gone: Vec<_> = known.difference(&listed).cloned().collect();
                *known = listed;
                (None, gone)
            }
            Event::Apply(object) => {
                known.insert(place(&object));
                (Some(object), Vec::new())
            }
            Event::Delete(object) => {
                let place = place(&object);
                known.remove(&place);
                (None, vec![place])
            }
        }
    }

    pub(super) fn is_whole(&self, source: Source) -> bool {
        self.whole.contains(&source)
    }
}
