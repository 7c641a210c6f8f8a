//! Global parameters: values that operators and tools store at the node, by name, and the name of the
//! cluster. They are stored in `global_parameters.json`, which is replaced as a whole, durably, on every
//! change, and carries a checksum as `node.json` does.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::disk::json_files::node_file::{self, NodeFileError};
use crate::disk::json_files::sealed_json::{self, SealedError, SealedObject};
use crate::limits::{GLOBAL_PARAMETER_BYTES_MAX, GLOBAL_PARAMETERS_BYTES_MAX};

const NAME: &str = "global_parameters.json";
const FORMAT: u64 = 1;

/// The parameter that is created with the node.
const CLUSTER_ID: &str = "internal_cluster_id";
const CLUSTER_ID_BYTES: usize = 16;

/// The value of a parameter: any JSON.
pub(crate) type Parameter = Value;

/// The members of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    global_parameters: BTreeMap<String, Value>,
}

/// The parameters by name.
#[derive(Debug)]
pub(crate) struct GlobalParameters {
    data_dir: PathBuf,
    values: Mutex<BTreeMap<String, Value>>,
}

impl GlobalParameters {
    /// Reads the parameters of a data directory; a new one gets a cluster id.
    ///
    /// # Errors
    /// [`NodeFileError`], a sentence for the operator.
    pub(crate) fn open(data_dir: &Path, may_begin: bool) -> Result<Self, NodeFileError> {
        let known = read(data_dir)?;
        let is_new = known.is_none();
        if is_new && !may_begin {
            return Err(NodeFileError::Missing { path: data_dir.join(NAME) });
        }
        let parameters =
            Self { data_dir: data_dir.to_owned(), values: Mutex::new(known.unwrap_or_default()) };
        if is_new {
            let mut id = [0; CLUSTER_ID_BYTES];
            let random = getrandom::fill(&mut id).map_err(io::Error::other);
            random.map_err(|error| parameters.unwritten(error))?;
            let id = format!("rabbitmq-cluster-id-{}", URL_SAFE_NO_PAD.encode(id));
            parameters.put(vec![(CLUSTER_ID.to_owned(), Some(Value::String(id)))])?;
        }
        Ok(parameters)
    }

    /// All parameters, sorted by name.
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        self.values.lock().iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The parameter with this name, if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.values.lock().get(name)?.as_str().map(str::to_owned)
    }

    /// Checks that there is room for parameters, of which each may be new or replace another one. Parameters that were
    /// stored before there was a bound stay, and may get smaller.
    ///
    /// # Errors
    /// The place in `new` of the one that is too large, and a sentence.
    pub(crate) fn check_room(&self, new: &[(String, Value)]) -> Result<(), (usize, String)> {
        let known = self.values.lock();
        let mut bytes: BTreeMap<&str, usize> =
            known.iter().map(|(name, value)| (&**name, bytes_of(name, value))).collect();
        let mut all = bytes.values().sum::<usize>();
        for (at, (name, value)) in new.iter().enumerate() {
            let after = bytes_of(name, value);
            if after > GLOBAL_PARAMETER_BYTES_MAX {
                let text = format!(
                    "a global parameter must not have more than {GLOBAL_PARAMETER_BYTES_MAX} bytes"
                );
                return Err((at, text));
            }
            let before = bytes.insert(name, after).unwrap_or_default();
            all = all + after - before;
            if all > GLOBAL_PARAMETERS_BYTES_MAX && after > before {
                let text = format!(
                    "all global parameters together must not have more than \
                     {GLOBAL_PARAMETERS_BYTES_MAX} bytes"
                );
                return Err((at, text));
            }
        }
        Ok(())
    }

    /// Gives parameters these values, or removes those without one, durably and in one step.
    ///
    /// # Errors
    /// If the disk refuses; nothing has changed then, at least until the next start.
    pub(crate) fn put(&self, changed: Vec<(String, Option<Value>)>) -> Result<(), NodeFileError> {
        self.change(|values| {
            for (name, value) in changed {
                match value {
                    Some(value) => values.insert(name, value),
                    None => values.remove(&name),
                };
            }
        })
    }

    /// Replaces all parameters, durably, if they are others.
    ///
    /// # Errors
    /// If the disk refuses; nothing has changed then, at least until the next start.
    pub(crate) fn replace(&self, values: BTreeMap<String, Value>) -> Result<(), NodeFileError> {
        if *self.values.lock() == values {
            return Ok(());
        }
        self.change(|known| *known = values)
    }

    /// True if there is a parameter with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.lock().contains_key(name)
    }

    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Value>),
    ) -> Result<(), NodeFileError> {
        let mut values = self.values.lock();
        let mut members = Members { global_parameters: values.clone() };
        change(&mut members.global_parameters);
        let text = sealed_json::text(&SealedObject { format: FORMAT, content: &members }, false);
        let changed = members.global_parameters;
        // The next start reads this file: what it could not read must not replace what it can.
        if parse(text.as_bytes()).as_ref() != Ok(&changed) {
            let error = io::Error::other("the values could not be read again");
            return Err(self.unwritten(error));
        }
        node_file::replace(&self.data_dir, NAME, &text)?;
        *values = changed;
        Ok(())
    }

    fn unwritten(&self, error: io::Error) -> NodeFileError {
        NodeFileError::Write { path: self.data_dir.join(NAME), error }
    }
}

/// Bytes of a parameter, as bounds count them.
fn bytes_of(name: &str, value: &Value) -> usize {
    name.len() + value.to_string().len()
}

/// Reads the file; none if it does not exist yet.
fn read(data_dir: &Path) -> Result<Option<BTreeMap<String, Value>>, NodeFileError> {
    let path = data_dir.join(NAME);
    let text = match sealed_json::read(&path) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(error) => return Err(NodeFileError::Read { path, error }),
    };
    parse(&text).map(Some).map_err(|error| NodeFileError::Sealed { path, error })
}

fn parse(text: &[u8]) -> Result<BTreeMap<String, Value>, SealedError> {
    let (_, members) = sealed_json::open(text, FORMAT..=FORMAT)?;
    let Members { global_parameters } = members;
    Ok(global_parameters)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A value inside `depth` lists.
    fn nested(depth: usize, value: f64) -> Value {
        (0..depth).fold(json!(value), |value, _| json!([value]))
    }

    #[test]
    fn every_value_that_is_accepted_can_be_read_at_the_next_start() {
        let name = format!("leveret-parameters-read-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let parameters = GlobalParameters::open(&folder, true).unwrap();
        // Numbers that are not the same when they are read by a shorter way, and the deepest value.
        let mut bits = 1_u64;
        let mut number = || {
            loop {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = f64::from_bits(bits ^ bits >> 31);
                if number.is_finite() {
                    return json!(number);
                }
            }
        };
        let numbers: Vec<Value> = (0..5000).map(|_| number()).collect();
        let set = |name: &str, value| parameters.put(vec![(name.to_owned(), Some(value))]);
        set("numbers", json!(numbers)).unwrap();
        set("number", json!(1.366_973_929_864_666_6e231)).unwrap();
        set("deep", nested(crate::limits::JSON_DEPTH_MAX, 0.1)).unwrap();
        let again = GlobalParameters::open(&folder, false).unwrap();
        assert_eq!(again.all(), parameters.all());
        // No door lets it in; if one did, the file would stay as it is.
        let refused = set("deeper", nested(126, 0.1)).unwrap_err();
        assert!(refused.to_string().ends_with("could not be read again"), "{refused}");
        assert_eq!(GlobalParameters::open(&folder, false).unwrap().all(), parameters.all());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn check_room_bounds_one_parameter_and_all_of_them() {
        let folder =
            std::env::temp_dir().join(format!("leveret-parameters-room-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let parameters = GlobalParameters::open(&folder, true).unwrap();
        let of = |name: &str, bytes: usize| {
            // With the quotation marks.
            (name.to_owned(), json!("x".repeat(bytes - name.len() - 2)))
        };
        let check = |new: &[(String, Value)]| parameters.check_room(new).map_err(|(at, _)| at);
        let max = GLOBAL_PARAMETER_BYTES_MAX;
        assert_eq!(check(&[of("a", max)]), Ok(()));
        assert_eq!(check(&[of("a", max), of("b", max + 1)]), Err(1));
        // The cluster id takes some.
        assert_eq!(check(&[of("a", max), of("b", max), of("c", max)]), Ok(()));
        assert_eq!(check(&[of("a", max), of("b", max), of("c", max), of("d", max)]), Err(3));
        assert_eq!(check(&[of("a", max), of("a", max), of("a", max), of("a", max)]), Ok(()));
        // What is stored already may be too much: it is read, and may get smaller.
        let all = (0..6).map(|number| of(&format!("p{number}"), max));
        let all = all
            .map(|(name, value)| (name, Some(value)))
            .chain([("large".to_owned(), Some(json!("x".repeat(3 * max))))]);
        parameters.put(all.collect()).unwrap();
        let parameters = GlobalParameters::open(&folder, false).unwrap();
        assert_eq!(parameters.all().len(), 8);
        let check = |new: &[(String, Value)]| parameters.check_room(new).map_err(|(at, _)| at);
        assert_eq!(check(&[of("p0", max - 1)]), Ok(()));
        assert_eq!(check(&[of("p0", max)]), Ok(()));
        assert_eq!(check(&[of("large", max)]), Ok(()));
        assert_eq!(check(&[of("new", 10)]), Err(0));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn global_parameters_have_the_octets_of_earlier_builds() {
        let folder =
            std::env::temp_dir().join(format!("leveret-parameters-octets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let values = Mutex::default();
        let parameters = GlobalParameters { data_dir: folder.clone(), values };
        let value = json!({"list": [1, 2.5, null], "a": "\u{e9}\""});
        parameters
            .put(vec![("b".to_owned(), Some(value)), ("a".to_owned(), Some(json!(-0.1)))])
            .unwrap();
        let text = std::fs::read_to_string(folder.join(NAME)).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"format":1,"global_parameters":{"a":-0.1,"b":{"list":[1,2.5,null],"a":"é\""}},"#,
                r#""sha256":"9cba30fd07ec940cfeebdf380f7e17e86815798ea796528ac109989ba2a30e77"}"#,
                "\n"
            )
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn unknown_member_or_format_is_refused_by_name() {
        let folder =
            std::env::temp_dir().join(format!("leveret-parameters-other-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (root, problem) in [
            (json!({"format": 1, "global_parameters": {}, "colour": 1}), "unknown field `colour`"),
            (json!({"format": 1}), "missing field `global_parameters`"),
            (json!({"format": 2, "global_parameters": {}}), "has format version 2, but"),
        ] {
            std::fs::write(folder.join(NAME), sealed_json::text(&root, false)).unwrap();
            let error = GlobalParameters::open(&folder, true).unwrap_err().to_string();
            assert!(error.contains(NAME) && error.contains(problem), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn global_parameters_are_read_back_and_damage_is_noticed() {
        let folder =
            std::env::temp_dir().join(format!("leveret-parameters-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let parameters = GlobalParameters::open(&folder, true).unwrap();
        let id = parameters.text(CLUSTER_ID).unwrap();
        let put = |name: &str, value| parameters.put(vec![(name.to_owned(), value)]).unwrap();
        put("a", Some(json!({"list": [1, 2.5, null]})));
        put("a", Some(json!(null)));
        put("b", Some(json!(-7)));
        put("b", None);
        put("b", None);
        let again = GlobalParameters::open(&folder, false).unwrap();
        assert_eq!(
            again.all(),
            [("a".to_owned(), json!(null)), (CLUSTER_ID.to_owned(), json!(id))]
        );
        let path = folder.join(NAME);
        let text = std::fs::read_to_string(&path).unwrap().replace("\"a\"", "\"c\"");
        std::fs::write(&path, text).unwrap();
        assert!(GlobalParameters::open(&folder, true).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            GlobalParameters::open(&folder, false),
            Err(NodeFileError::Missing { .. })
        ));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
