//! Real links between real sockets. They need root or the rights to make network namespaces; elsewhere they skip.

mod fate;
mod fault;
mod place;
mod rate;
mod support;
mod witness;
