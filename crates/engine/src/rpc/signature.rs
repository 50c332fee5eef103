//! Shows that a record comes from somebody who knows a secret, and says what it said then: HMAC-SHA256 (RFC 2104).

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// A secret that callers and responders share.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey([secret])")
    }
}

impl SigningKey {
    /// Any bytes; better 32 random ones.
    pub fn new(secret: &[u8]) -> Self {
        Self(secret.to_vec())
    }

    fn mac(&self, fields: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for field in fields {
            // The length before each field: no two lists of fields give the same bytes.
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac
    }

    /// The signature of these fields, in this order.
    pub fn sign(&self, fields: &[&[u8]]) -> Vec<u8> {
        self.mac(fields).finalize().into_bytes().to_vec()
    }

    /// Whether the signature is that of these fields. Takes equally long for any wrong one.
    pub fn verify(&self, fields: &[&[u8]], signature: &[u8]) -> bool {
        self.mac(fields).verify_slice(signature).is_ok()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_changed_field_or_key_or_border_is_noticed() {
        let key = SigningKey::new(b"secret");
        let signature = key.sign(&[b"one", b"two"]);
        assert!(key.verify(&[b"one", b"two"], &signature));
        assert!(!key.verify(&[b"one", b"twO"], &signature));
        assert!(!key.verify(&[b"onet", b"wo"], &signature));
        assert!(!SigningKey::new(b"other").verify(&[b"one", b"two"], &signature));
    }

    #[test]
    fn it_is_the_hmac_of_the_standard() {
        // RFC 4231, test case 2, without our lengths.
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").expect("any length");
        mac.update(b"what do ya want for nothing?");
        assert_eq!(mac.finalize().into_bytes()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}
