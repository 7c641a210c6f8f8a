//! Keys for users, logins and definitions.

use crate::config::key::Key;
use crate::config::values::{boolean, one_of, pattern, readable_file};
use crate::config::{Config, SeededUser};

pub(super) const KEYS: &[Key] = &[
    Key::new("auth_mechanisms.$name", None, |config, _, value| {
        let names = session::MECHANISMS.map(|name| (name, name));
        config.auth_mechanisms.push(one_of(value, &names)?);
        Ok(())
    }),
    Key::new("anonymous_login_user", None, |config, _, value| {
        config.anonymous_login.user = Some(value.to_owned()).filter(|user| user != "none");
        config.anonymous_login.is_configured = true;
        Ok(())
    }),
    Key::new("anonymous_login_pass", None, |config, _, value| {
        config.anonymous_login.password = value.to_owned();
        Ok(())
    })
    .secret(),
    Key::new("auth_backends.$number", None, |_, _, value| only_internal(value)),
    Key::new("auth_backends.$number.authn", None, |_, _, value| only_internal(value)),
    Key::new("auth_backends.$number.authz", None, |_, _, value| only_internal(value)),
    Key::new("default_user", Some("guest"), |config, _, value| {
        config.default_user.name = value.to_owned();
        Ok(())
    }),
    Key::new("default_pass", Some("guest"), |config, _, value| {
        config.default_user.password = value.to_owned();
        Ok(())
    })
    .secret(),
    Key::new("default_user_tags.$tag", None, |config, tag, value| {
        config.default_user.tags.retain(|name| name != tag);
        if boolean(value)? {
            config.default_user.tags.push(tag.to_owned());
        }
        Ok(())
    }),
    Key::new("default_vhost", Some("/"), |config, _, value| {
        config.default_user.vhost = value.to_owned();
        Ok(())
    }),
    Key::new("default_permissions.configure", Some(".*"), |config, _, value| {
        config.default_user.configure = pattern(value)?;
        Ok(())
    }),
    Key::new("default_permissions.write", Some(".*"), |config, _, value| {
        config.default_user.write = pattern(value)?;
        Ok(())
    }),
    Key::new("default_permissions.read", Some(".*"), |config, _, value| {
        config.default_user.read = pattern(value)?;
        Ok(())
    }),
    Key::new("default_users.$name.password", None, |config, name, value| {
        seeded(config, name).password = Some(value.to_owned());
        Ok(())
    })
    .secret(),
    Key::new("default_users.$name.tags", None, |config, name, value| {
        let tags = value.split(',').map(|tag| tag.trim().to_owned());
        seeded(config, name).tags = tags.filter(|tag| !tag.is_empty()).collect();
        Ok(())
    }),
    Key::new("default_users.$name.vhost_pattern", None, |config, name, value| {
        seeded(config, name).vhost_pattern = pattern(value)?;
        Ok(())
    }),
    Key::new("default_users.$name.configure", None, |config, name, value| {
        seeded(config, name).configure = pattern(value)?;
        Ok(())
    }),
    Key::new("default_users.$name.write", None, |config, name, value| {
        seeded(config, name).write = pattern(value)?;
        Ok(())
    }),
    Key::new("default_users.$name.read", None, |config, name, value| {
        seeded(config, name).read = pattern(value)?;
        Ok(())
    }),
    Key::new("loopback_users", None, |config, _, value| {
        one_of(value, &[("none", ())])?;
        config.loopback_users.clear();
        Ok(())
    }),
    Key::new("loopback_users.$user", None, |config, user, value| {
        config.loopback_users.retain(|name| name != user);
        if boolean(value)? {
            config.loopback_users.push(user.to_owned());
        }
        Ok(())
    }),
    Key::new("load_definitions", None, |config, _, value| {
        config.load_definitions = Some(readable_file(value)?);
        Ok(())
    })
    .or(&["definitions.local.path", "management.load_definitions"]),
    Key::new("definitions.import_backend", None, |_, _, value| {
        let words = ["local_filesystem", "local", "rabbitmq_definitions_import_local_filesystem"];
        one_of(value, &words.map(|word| (word, ())))
    }),
];

/// Accepts only the internal backend: ignoring another backend would admit users whom it refuses.
fn only_internal(value: &str) -> Result<(), String> {
    one_of(value, &["internal", "rabbit_auth_backend_internal"].map(|word| (word, ())))
}

fn seeded<'a>(config: &'a mut Config, name: &str) -> &'a mut SeededUser {
    config.default_users.entry(name.to_owned()).or_default()
}
