//! Every built-in case against the reference server, each as a test of its own. The same function serves a user's
//! own crate; see `idemproof::run::harness`.

use idemproof::{
    judge::Gate,
    run::{Arguments, HarnessOptions, Selection, StageOptions, TargetSource, harness},
    text::Span,
};

fn main() {
    let options = HarnessOptions {
        stage: StageOptions { source: TargetSource::Reference(Box::default()), toxiproxy: None },
        selection: Selection::default(),
        max_wait: Span::from_secs(5),
        gate: Gate::default(),
        inconclusive_fails: true,
    };
    match harness(&Arguments::from_args(), &options) {
        Ok(conclusion) => conclusion.exit(),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}
