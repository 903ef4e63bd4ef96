//! `idemproof completions` and `idemproof man`: made from the definitions of the command line.

use std::{io::Write, path::Path};

use super::{
    Exit,
    args::{CompletionsArgs, ManArgs, command},
};

/// Prints the completion script of a shell.
pub(super) fn completions(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "idemproof", &mut script);
    print(&script)
}

/// Prints the main page, or writes all pages into a folder.
pub(super) fn man(args: &ManArgs) -> Exit {
    let mut command = command();
    command.build();
    let Some(folder) = &args.folder else {
        return match page(&command) {
            Ok(page) => print(&page),
            Err(error) => failed(Path::new("-"), &error),
        };
    };
    if let Err(error) = std::fs::create_dir_all(folder) {
        return failed(folder, &error);
    }
    let pages = std::iter::once(("idemproof".to_owned(), &command)).chain(
        command
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
            .map(|sub| (format!("idemproof-{}", sub.get_name()), sub)),
    );
    for (name, command) in pages {
        let path = folder.join(format!("{name}.1"));
        if let Err(error) = page(command).and_then(|page| std::fs::write(&path, page)) {
            return failed(&path, &error);
        }
        println!("{}", path.display());
    }
    Exit::Fine
}

fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

fn print(text: &[u8]) -> Exit {
    match std::io::stdout().write_all(text) {
        Ok(()) => Exit::Fine,
        Err(error) => failed(Path::new("-"), &error),
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Exit {
    eprintln!("error: cannot write `{}`: {error}", path.display());
    Exit::Internal
}
