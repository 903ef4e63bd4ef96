#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blocks;
mod files;
mod properties;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{Arc, Mutex},
};

use super::{Origin, Style, fixture};

/// What was written to a terminal.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn style(width: usize, unicode: bool) -> Style {
    Style { color: false, unicode, width }
}

fn origin() -> Origin {
    Origin::of(&fixture::run(), BTreeMap::new())
}
