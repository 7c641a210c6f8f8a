//! The macro that expands the method table.
//!
//! A line of the table:
//!
//! ```text
//! /// Declares a queue.
//! QueueDeclare<'a> = (50, 10, "queue.declare") {
//!     [Short]                    reserved: read past, written as zero or empty
//!     /// The queue's name.
//!     queue: ShortStr,           a field: read, checked, written in this place
//!     durable: Bit,              bits beside each other share an octet
//!     ; [ShortStr, Bit]          reserved, after the fields
//! }
//! ```
//!
//! `<'a>` stands where a field borrows from the wire.

/// Expands to the structs, to `Method` with its decoding and encoding, and to the list of names.
macro_rules! define_methods {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<$lifetime:lifetime>)? = ($class:literal, $number:literal, $text:literal) {
            $($fields:tt)*
        }
    )*) => {
        $(
            define_methods! { @struct [$(#[$doc])*] $name [$($lifetime)?] { $($fields)* } }

            impl<'a> From<$name $(<$lifetime>)?> for Method<'a> {
                fn from(method: $name $(<$lifetime>)?) -> Self {
                    Self::$name(method)
                }
            }
        )*

        /// A method with its arguments.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Method<'a> {
            $( $(#[$doc])* $name($name $(<$lifetime>)?), )*
        }

        /// Every method with its name, in ascending order.
        pub const METHODS: &[(MethodId, &str)] = &[
            $( (MethodId { class_id: $class, method_id: $number }, $text), )*
        ];

        impl<'a> Method<'a> {
            #[inline]
            pub(super) fn decode_arguments(
                id: MethodId,
                arguments: &'a [u8],
            ) -> Result<Self, MethodErrorKind> {
                match (id.class_id, id.method_id) {
                    $( ($class, $number) => $name::decode(arguments).map(Self::$name), )*
                    _ => Err(MethodErrorKind::UnknownMethod),
                }
            }

            /// Appends class id, method id and arguments: the payload of a method frame.
            #[inline]
            pub fn encode(&self, out: &mut Vec<u8>) {
                let MethodId { class_id, method_id } = self.id();
                put_u16(out, class_id);
                put_u16(out, method_id);
                match self {
                    $( Self::$name(method) => method.encode(out), )*
                }
            }

            /// Class and method ids.
            #[must_use]
            pub fn id(&self) -> MethodId {
                match self {
                    $( Self::$name(_) => MethodId { class_id: $class, method_id: $number }, )*
                }
            }

            /// The name as AMQP has it: `queue.declare`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $text, )*
                }
            }
        }
    };

    // A method without arguments.
    (@struct [$($doc:tt)*] $name:ident [] {}) => {
        $($doc)*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name;
        define_methods! { @codec $name [] { [] [] [] } }
    };

    // A method whose arguments are all reserved.
    (@struct [$($doc:tt)*] $name:ident [] { [$($before:ident),*] }) => {
        $($doc)*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name;
        define_methods! { @codec $name [] { [$($before)*] [] [] } }
    };

    (@struct [$($doc:tt)*] $name:ident [$($lifetime:lifetime)?] {
        $([$($before:ident),*])?
        $( $(#[$field_doc:meta])* $field:ident : $kind:ident ),+ $(,)?
        $(; [$($after:ident),*])?
    }) => {
        $($doc)*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name $(<$lifetime>)? {
            $( $(#[$field_doc])* pub $field: define_methods!(@type $kind), )+
        }
        define_methods! { @codec $name [$($lifetime)?] {
            [$($($before)*)?] [$($field: $kind,)+] [$($($after)*)?]
        } }
    };

    (@codec $name:ident [$($lifetime:lifetime)?] {
        [$($before:ident)*] [$($field:ident : $kind:ident,)*] [$($after:ident)*]
    }) => {
        impl<'a> Arguments<'a> for $name $(<$lifetime>)? {
            #[inline]
            fn decode(arguments: &'a [u8]) -> Result<Self, MethodErrorKind> {
                let reader = &mut FieldReader::new(arguments);
                $( reader.pass_reserved::<$before>()?; )*
                $( let $field = <$kind as Field<'a>>::read(reader)?; )*
                $( reader.pass_reserved::<$after>()?; )*
                reader.finish()?;
                Ok(Self { $( $field: <$kind as Field<'a>>::check($field)?, )* })
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let writer = &mut FieldWriter::new(out);
                $( writer.put_reserved::<$before>(); )*
                $( <$kind as Field<'a>>::write(writer, self.$field); )*
                $( writer.put_reserved::<$after>(); )*
                writer.finish();
            }
        }
    };

    (@type Bit) => { bool };
    (@type Octet) => { u8 };
    (@type Short) => { u16 };
    (@type Long) => { u32 };
    (@type LongLong) => { u64 };
    (@type ShortStr) => { &'a str };
    (@type ShortBytes) => { &'a [u8] };
    (@type LongStr) => { &'a [u8] };
    (@type Table) => { TableRef<'a> };
}

pub(super) use define_methods;
