//! The node as HTTP sees it, one file for each trait of `management::Node`: what is the case is copied
//! under the vhosts' locks.

mod logins;
mod policies;
mod status;
mod topology;
mod vhosts;
