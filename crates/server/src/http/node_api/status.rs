//! The node itself.

use management::{NodeSnapshot, ProcessSnapshot, ServerCertificate};
use rustix::process::{Resource, getrlimit};

use crate::node::Node;
use crate::node::alarms::{self, Alarm};
use crate::tls;

impl management::Status for Node {
    fn snapshot(&self) -> NodeSnapshot {
        let alarm = *self.alarm.borrow();
        NodeSnapshot {
            name: self.name.clone(),
            leveret_version: env!("CARGO_PKG_VERSION"),
            identity: self.identity.clone(),
            cluster_name: self.cluster_name(),
            durability: self.durability.as_str(),
            listeners: self.listeners.clone(),
            mechanisms: self.mechanisms().to_vec(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            resident_bytes: alarms::resident_bytes(),
            memory_watermark_bytes: self.alarm_limits.memory_watermark_bytes(),
            memory_alarm: alarm.is_some_and(Alarm::is_of_memory),
            disk_free_bytes: alarms::free_bytes(&self.data_dir),
            disk_free_limit_bytes: self.alarm_limits.disk_free_limit_bytes(),
            disk_alarm: alarm.is_some_and(Alarm::is_of_disk),
        }
    }

    fn permits_global_qos(&self) -> bool {
        self.vhosts.options().permits_global_qos
    }

    fn process(&self) -> ProcessSnapshot {
        let open = std::fs::read_dir("/proc/self/fd");
        let threads = std::fs::read_dir("/proc/self/task");
        ProcessSnapshot {
            id: std::process::id(),
            // One of them is the directory that is read here.
            fd_used: open.ok().map(|open| (open.count() as u64).saturating_sub(1)),
            fd_total: getrlimit(Resource::Nofile).current,
            threads: threads.ok().map(|threads| threads.count() as u64),
            threads_max: getrlimit(Resource::Nproc).current,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            data_dir: self.data_dir.display().to_string(),
        }
    }

    fn certificates(&self) -> Vec<ServerCertificate> {
        let now_s = i64::try_from(self.clock.now().wall_ms / 1000).unwrap_or(i64::MAX);
        let all = self.certificate_files.iter().map(|(listener, file)| ServerCertificate {
            listener: *listener,
            file: file.display().to_string(),
            expires_in_s: tls::expiry_s(file).map(|at| at.saturating_sub(now_s)),
        });
        all.collect()
    }
}
