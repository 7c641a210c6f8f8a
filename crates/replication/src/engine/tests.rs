//! The guards of the engine: each test fails without its guard.
