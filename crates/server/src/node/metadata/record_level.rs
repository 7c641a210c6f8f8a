//! The level of record kinds of the cluster: the node that leads the metadata raises it when all nodes can read more.
//!
//! It looks whenever the metadata may have changed, so after each election and each change of the list of the nodes, and
//! whenever a peer tells what it has followed, as each does first on a new link.

use replication::levels::{RECORD_LEVEL, check_level};

use crate::disk::json_files::members::item_value;
use crate::metadata::{ItemChange, ItemKey};
use crate::node::Node;
use crate::node::metadata::unable;
use crate::requests::ChangeError;

impl Node {
    /// The level of record kinds that may be written: that of the cluster, or of this build without one.
    pub(crate) fn record_level(&self) -> u16 {
        self.cluster.as_ref().map_or(RECORD_LEVEL, |links| links.record_level())
    }

    /// The newest level of record kinds that this node reads, as it tells the others.
    pub(crate) fn own_record_level(&self) -> u16 {
        self.cluster.as_ref().map_or(RECORD_LEVEL, |links| links.options.record_level)
    }

    /// Takes the level that the metadata have.
    ///
    /// # Errors
    /// A sentence: this node does not read the records of its cluster, or its disk refuses.
    pub(super) fn settle_record_level(&self, level: u16) -> Result<(), String> {
        let Some(links) = &self.cluster else { return Ok(()) };
        check_level(self.own_record_level(), level).map_err(|problem| problem.to_string())?;
        let has_risen = links.raise_record_level(level).map_err(|error| error.to_string())?;
        if let Some(replication) = self.replication.as_ref().filter(|_| has_risen) {
            replication.follow_nodes(links);
        }
        Ok(())
    }

    /// Lets the thread that follows the metadata look again, if the level may rise when a node has come.
    pub(in crate::node) fn look_at_record_levels(&self) {
        if let Some(metadata) = &self.metadata
            && self.record_level() < self.own_record_level()
        {
            metadata.store.look_again();
        }
    }

    /// Raises the level, if it is to rise by itself and this node leads the metadata.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn keep_record_level(&self) -> Result<(), String> {
        let (Some(links), Some(metadata)) = (&self.cluster, &self.metadata) else { return Ok(()) };
        if !links.options.raises_level
            || !metadata.store.is_leading()
            || links.level_to_rise_to().is_none()
        {
            return Ok(());
        }
        self.raise_to_lowest().map_err(|error| error.to_string())
    }

    /// Raises the level to that of the lowest node, by command. This node leads the metadata.
    ///
    /// # Errors
    /// [`ChangeError::Unable`]: a node is not connected, or no majority is.
    pub(crate) fn raise_level_on_request(&self) -> Result<(), ChangeError> {
        let Some(links) = &self.cluster else { return Ok(()) };
        let away = links.away();
        if self.record_level() < self.own_record_level() && !away.is_empty() {
            return Err(ChangeError::Unable(format!(
                "the level of record kinds can rise when all nodes are connected; these are not: {}",
                away.join(", ")
            )));
        }
        self.raise_to_lowest()
    }

    fn raise_to_lowest(&self) -> Result<(), ChangeError> {
        let (Some(links), Some(metadata)) = (&self.cluster, &self.metadata) else { return Ok(()) };
        let _one_at_a_time = self.changes.lock();
        self.begin_change_of_metadata()?;
        // Under the lock no node joins, so that the list has all nodes that count. It is known with the first items.
        let Some(level) = links.level_to_rise_to().filter(|_| !links.nodes().is_empty()) else {
            return Ok(());
        };
        let change = ItemChange { key: ItemKey::RecordLevel, value: Some(item_value(&level)) };
        metadata.store.change(vec![change]).map_err(|error| unable(&error))?;
        self.settle_everywhere(metadata).map_err(ChangeError::Unable)
    }
}
