//! Reading what people write.
