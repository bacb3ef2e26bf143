//! Variants that foreign workers announce, among those of the linked crates.

use std::time::Duration;

use super::{RegisteredKernel, Registry};
use crate::foreign::{AnnouncedVariant, Announcement, ForeignVariant, ForeignWorker};
use crate::kernel::{Implementation, Location, VariantEntry};
use crate::nearest::nearest;
use crate::visible::is_obeyed;

/// Why what a foreign worker announces does not fit.
#[derive(Debug, thiserror::Error)]
#[error("the worker `{worker}` announces {what}{}{mistake}", place.as_ref().map_or_else(|| ": ".into(), |place| format!(" ({place}): ")))]
pub struct EnlistError {
    worker: String,
    /// The variant, in words.
    what: String,
    place: Option<String>,
    mistake: String,
}

impl Registry {
    /// Adds what foreign workers announce. They are started when they are needed, for a device by its number unless all are
    /// left alone, and may take so long to begin.
    pub fn enlist(
        &mut self,
        announcements: &[Announcement],
        device: (usize, bool),
        patience: Duration,
    ) -> Result<(), EnlistError> {
        for announcement in announcements {
            let mut worker = None;
            for variant in &announcement.variants {
                let mistaken = |mistake| EnlistError {
                    worker: announcement.program.name.clone(),
                    what: format!("a variant `{}` of `{}`", variant.name, variant.of),
                    place: variant.place.as_ref().map(|p| format!("{}:{}", p.file, p.line)),
                    mistake,
                };
                for instance in self.instances(variant).map_err(mistaken)? {
                    // Entries are constants to all others; these live as long as the process, too.
                    let program = || announcement.program.clone();
                    let leak = || -> &'static ForeignWorker {
                        let worker = ForeignWorker::new(program(), device, patience);
                        Box::leak(Box::new(worker.forked_by(announcement.server)))
                    };
                    let worker = worker.get_or_insert_with(leak);
                    let kernel = &mut self.kernels[instance];
                    kernel.variants.push(entry_of(worker, kernel, variant));
                }
            }
        }
        Ok(())
    }

    /// Positions of the kernels that a variant is one of, for all its element types; an error says why it fits none.
    fn instances(&self, new: &AnnouncedVariant) -> Result<Vec<usize>, String> {
        let AnnouncedVariant { of, name, types, parameters, .. } = new;
        let is_blank = |c: char| c.is_whitespace() || is_obeyed(c) || "/,=<>".contains(c);
        if name.is_empty() || name.contains(is_blank) {
            return Err("a name has no blanks and none of `/`, `,`, `=`, `<`, `>`".to_owned());
        }
        let path = self.path_of(of)?;
        let is_meant = |instance: &usize| self.kernels[*instance].entry.path() == path;
        let mut instances: Vec<usize> = (0..self.kernels.len()).filter(is_meant).collect();
        let element = |instance: &usize| self.kernels[*instance].entry.element;
        if let Some(types) = types {
            let known: Vec<&str> = instances.iter().map(element).collect();
            if let Some(unknown) = types.iter().find(|element| !known.contains(&element.as_str())) {
                let known = known.join(", ");
                return Err(format!("`{path}` is not there for {unknown}, but for {known}"));
            }
            instances.retain(|instance| types.iter().any(|wanted| wanted == element(instance)));
        }
        for instance in &instances {
            let RegisteredKernel { entry, variants } = &self.kernels[*instance];
            let known = || entry.parameters.iter().chain(entry.axes).copied();
            if let Some(unknown) =
                parameters.iter().find(|name| known().all(|known| known != *name))
            {
                let known: Vec<&str> = known().collect();
                return Err(format!(
                    "it takes `{unknown}`, which is no parameter or axis of the kernel; these are {}",
                    known.join(", ")
                ));
            }
            if let Some(other) = variants.iter().find(|variant| variant.name == name) {
                let (element, place) = (entry.element, other.location);
                return Err(format!(
                    "`{path}` has a variant of that name for {element} (at {place}); give one of them another name"
                ));
            }
        }
        Ok(instances)
    }

    /// Whether there is a kernel of a name or a path.
    pub fn has(&self, of: &str) -> bool {
        self.kernels.iter().any(|kernel| kernel.entry.name == of || kernel.entry.path() == of)
    }

    /// The path of a kernel that is given by its name or its path.
    fn path_of(&self, of: &str) -> Result<String, String> {
        let is_meant =
            |kernel: &&RegisteredKernel| kernel.entry.name == of || kernel.entry.path() == of;
        let mut paths: Vec<String> =
            self.kernels.iter().filter(is_meant).map(|kernel| kernel.entry.path()).collect();
        paths.dedup();
        match paths.as_slice() {
            [path] => Ok(path.clone()),
            [] => {
                let near = nearest(of, self.kernels.iter().map(|kernel| kernel.entry.name));
                let near =
                    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Err(format!("there is no such kernel in this program{near}"))
            }
            several => {
                Err(format!("several kernels are called so; give one of {}", several.join(", ")))
            }
        }
    }
}

fn entry_of(
    worker: &'static ForeignWorker,
    kernel: &RegisteredKernel,
    new: &AnnouncedVariant,
) -> &'static VariantEntry {
    let foreign = Box::leak(Box::new(ForeignVariant {
        worker,
        kernel: kernel.entry,
        of: new.of.clone(),
        name: new.name.clone(),
        backend: new.backend,
        queue: new.queue,
    }));
    let name: &'static str = new.name.clone().leak();
    let location = match &new.place {
        Some(place) => Location { file: place.file.clone().leak(), line: place.line, column: 1 },
        None => Location { file: "", line: 0, column: 0 },
    };
    Box::leak(Box::new(VariantEntry {
        kernel: kernel.entry,
        name,
        is_base: false,
        module: kernel.entry.module,
        function: name,
        code: "",
        location,
        backend: new.backend,
        threshold: None,
        valid: None,
        expectations: &[],
        ignore: None,
        tolerance: new.tolerance,
        flops: None,
        bytes: None,
        debug_assertions: false,
        has_fixed_outputs: false,
        is_reentrant: false,
        implementation: Implementation::Foreign(foreign),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{ForeignProgram, VariantPlace};
    use crate::kernel::Backend;
    use crate::registry::fixtures::base;

    fn announced(change: impl FnOnce(&mut AnnouncedVariant)) -> Result<Registry, EnlistError> {
        let mut variant = AnnouncedVariant {
            of: "double".into(),
            name: "numpy".into(),
            backend: Backend::Serial,
            types: None,
            parameters: vec!["x".into(), "n".into()],
            tolerance: Some(1e-3),
            queue: None,
            place: Some(VariantPlace { file: "mine.py".into(), line: 7 }),
        };
        change(&mut variant);
        let program = ForeignProgram::new("mine", vec![]);
        let (about, unavailable, server) = (None, None, None);
        let variants = vec![variant];
        let announcement = Announcement { program, about, variants, unavailable, server };
        let mut registry = Registry::of([base()]).expect("one kernel");
        registry.enlist(&[announcement], (0, false), Duration::from_secs(1))?;
        Ok(registry)
    }

    #[test]
    fn a_variant_comes_behind_those_of_the_program_and_inherits_its_kernel() {
        let registry = announced(|_| {}).expect("it fits");
        let names: Vec<&str> = registry.kernels[0].variants.iter().map(|v| v.name).collect();
        assert_eq!(names, ["double", "numpy"]);
        let added = registry.kernels[0].variants[1];
        assert!(!added.is_base && added.implementation.foreign().is_some());
        assert_eq!(
            (added.tolerance, added.location.to_string().as_str()),
            (Some(1e-3), "mine.py:7:1")
        );
        assert!(announced(|v| v.of = "demo::double".into()).is_ok());
        assert!(announced(|v| v.types = Some(vec!["f32".into()])).is_ok());
    }

    #[test]
    fn what_does_not_fit_is_explained_with_its_place() {
        type Change = fn(&mut AnnouncedVariant);
        let cases: [(Change, &str); 6] = [
            (|v| v.of = "duoble".into(), "did you mean `double`?"),
            (|v| v.of = "something_else".into(), "there is no such kernel in this program"),
            (|v| v.types = Some(vec!["f99".into()]), "is not there for f99, but for f32"),
            (
                |v| v.parameters.push("z".into()),
                "`z`, which is no parameter or axis of the kernel; these are x, y, n",
            ),
            (|v| v.name = "double".into(), "has a variant of that name"),
            (|v| v.name = "a/b".into(), "a name has no blanks"),
        ];
        for (change, reason) in cases {
            let error = announced(change).err().expect(reason).to_string();
            assert!(error.contains(reason), "{error}");
            assert!(
                error.contains("the worker `mine` announces a variant")
                    && error.contains("mine.py:7"),
                "{error}"
            );
        }
    }
}
