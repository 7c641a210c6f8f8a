//! The source of a connection: the unit by which shares of connections and logins are counted.

use std::net::{IpAddr, Ipv6Addr};

/// Length of the IPv6 prefix that one customer of a network owns, in bits.
const IPV6_SITE_BITS: u32 = 64;

/// An IPv4 address, or the first 64 bits of an IPv6 address, because a machine can choose the rest freely.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Source(IpAddr);

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let site = address.to_bits() & (u128::MAX << (u128::BITS - IPV6_SITE_BITS));
                IpAddr::V6(Ipv6Addr::from_bits(site))
            }
            address @ (IpAddr::V4(_) | IpAddr::V6(_)) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_site_are_one_source() {
        let source = |address: &str| Source::from(address.parse::<IpAddr>().unwrap());
        assert_eq!(source("2001:db8:1:2:3::4"), source("2001:db8:1:2:ffff::1"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
        assert_ne!(source("::1"), source("::2"));
    }
}
