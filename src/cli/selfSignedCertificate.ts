import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { parseIpAddress } from '../access/ipAddress.ts';
import { invariant } from '../base/invariant.ts';

export interface SelfSignedCertificate {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

/**
 * A fresh P-256 key and a certificate (RFC 5280, version 3) that it signs itself, for a TLS server under all of
 * `names`: host names and IP addresses, at least one. It may sign no other certificate, so whoever trusts it trusts
 * this server alone. Built by hand since node:crypto only reads certificates.
 */
export function selfSignedCertificate(
  names: readonly string[],
  validFromMs: number,
  validToMs: number,
): SelfSignedCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = sequence(set(sequence(oid(OID.commonName), utf8(names[0] ?? ''))));
  const toBeSigned = sequence(
    element(0xa0, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    sequence(oid(OID.ecdsaWithSha256)),
    subject, // as issuer
    sequence(time(validFromMs), time(validToMs)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    element(0xa3, sequence(...extensions(names))),
  );
  const signature = sign('sha256', toBeSigned, privateKey);
  const certificate = sequence(toBeSigned, sequence(oid(OID.ecdsaWithSha256)), bitString(signature));
  return {
    certificatePem: pem('CERTIFICATE', certificate),
    privateKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Contents of object identifiers in DER. */
const OID = {
  commonName: '550403',
  ecdsaWithSha256: '2a8648ce3d040302',
  subjectAltName: '551d11',
  basicConstraints: '551d13',
} as const;

const TRUE = Buffer.from([0x01, 0x01, 0xff]);
const SERIAL_BYTES = 16;

function extensions(names: readonly string[]): Buffer[] {
  const notAnAuthority = sequence();
  return [
    sequence(oid(OID.basicConstraints), TRUE, element(0x04, notAnAuthority)),
    sequence(oid(OID.subjectAltName), element(0x04, sequence(...names.map(generalName)))),
  ];
}

/** RFC 5280 section 4.2.1.6: a host name is [2] IA5String, an address [7] OCTET STRING of 4 or 16 bytes. */
function generalName(name: string): Buffer {
  const address = parseIpAddress(name);
  if (address === null) return element(0x82, Buffer.from(name, 'ascii'));
  if (address.family === 4) return element(0x87, Buffer.from(name.split('.').map(Number)));
  return element(0x87, Buffer.from(address.groups.flatMap((group) => [group >> 8, group & 255])));
}

/** Positive, and without a leading zero byte that DER would not allow. */
function serialNumber(): Buffer {
  const bytes = randomBytes(SERIAL_BYTES);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

/** RFC 5280 section 4.1.2.5: two digits of the year until 2049, four from 2050. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+|[^\dZ]/g, '');
  const isLate = Number(digits.slice(0, 4)) >= 2050;
  return element(isLate ? 0x18 : 0x17, Buffer.from(isLate ? digits : digits.slice(2), 'ascii'));
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

const sequence = (...parts: Buffer[]) => element(0x30, ...parts);
const set = (...parts: Buffer[]) => element(0x31, ...parts);
const integer = (bytes: Buffer) => element(0x02, bytes);
const oid = (hex: string) => element(0x06, Buffer.from(hex, 'hex'));
const utf8 = (text: string) => element(0x0c, Buffer.from(text, 'utf8'));
const bitString = (bytes: Buffer) => element(0x03, Buffer.from([0]), bytes);

/** X.690 section 8.1: tag, definite length, contents. */
function element(tag: number, ...parts: Buffer[]): Buffer {
  const contents = Buffer.concat(parts);
  const { length } = contents;
  invariant(length < 2 ** 16, 'a certificate is small');
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), contents]);
  if (length < 0x100) return Buffer.concat([Buffer.from([tag, 0x81, length]), contents]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 255]), contents]);
}
