//! Multipart forms, as browsers and `curl -F` send them (RFC 7578).

/// The content of the first part with this name. `content_type` is the type of the whole body.
pub(crate) fn part<'a>(content_type: &str, body: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let delimiter = format!("\r\n--{}", boundary(content_type)?);
    // The first delimiter has no line break before it.
    let mut rest = after(body, delimiter.trim_start().as_bytes())?;
    loop {
        rest = rest.strip_prefix(b"\r\n")?;
        let end = find(rest, delimiter.as_bytes())?;
        let (part, behind) = rest.split_at(end);
        let blank = find(part, b"\r\n\r\n")?;
        let (head, content) = part.split_at(blank);
        if is_named(&String::from_utf8_lossy(head), name) {
            return content.strip_prefix(b"\r\n\r\n");
        }
        rest = after(behind, delimiter.as_bytes())?;
    }
}

/// True if the content type is a multipart form.
pub(crate) fn is_form(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("multipart/form-data")
}

fn boundary(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1).filter_map(|one| one.split_once('='));
    let (_, value) =
        parameters.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    let value = value.trim().trim_matches('"');
    (!value.is_empty()).then_some(value)
}

fn is_named(head: &str, name: &str) -> bool {
    let quoted = format!("name=\"{name}\"");
    head.split("\r\n").any(|line| {
        let (field, value) = line.split_once(':').unwrap_or_default();
        field.eq_ignore_ascii_case("content-disposition")
            && value.split(';').any(|parameter| {
                let parameter = parameter.trim();
                parameter == quoted || parameter == format!("name={name}")
            })
    })
}

fn after<'a>(bytes: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let at = find(bytes, wanted)?;
    bytes.get(at + wanted.len()..)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=XX";

    #[test]
    fn multipart_part_is_found_by_name() {
        let body = b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX\r\n\
            content-disposition: form-data; name=\"file\"; filename=\"x\"\r\n\
            Content-Type: application/json\r\n\r\n{\r\n}\r\n--XX--\r\n";
        assert_eq!(part(TYPE, body, "file"), Some(&b"{\r\n}"[..]));
        assert_eq!(part(TYPE, body, "a"), Some(&b"1"[..]));
        assert_eq!(part(TYPE, body, "filename"), None);
        assert_eq!(part("multipart/form-data; boundary=\"YY\"", body, "a"), None);
        assert!(is_form(TYPE) && is_form("Multipart/Form-Data") && !is_form("application/json"));
    }

    #[test]
    fn multipart_form_must_be_complete() {
        let body = b"--XX\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nabc\r\n--XX--";
        for end in 0..body.len() - 2 {
            assert_eq!(part(TYPE, &body[..end], "file"), None, "{end}");
        }
        assert_eq!(part(TYPE, body, "file"), Some(&b"abc"[..]));
        assert_eq!(part("multipart/form-data", body, "file"), None);
    }
}
