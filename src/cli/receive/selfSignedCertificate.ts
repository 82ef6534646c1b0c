import { isIP } from 'node:net';

export interface SelfSignedCertificate {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

/**
 * A fresh P-256 key and a certificate that it signs itself, for a TLS server under all of `names`: host names and IP
 * addresses, at least one. It may sign no other certificate, so a client that trusts it trusts this server alone.
 */
export async function selfSignedCertificate(
  names: readonly string[],
  validFromMs: number,
  validToMs: number,
): Promise<SelfSignedCertificate> {
  // Loaded only here: it takes as long as all the other commands together.
  const { generate } = await import('selfsigned');
  const made = await generate([{ name: 'commonName', value: names[0] ?? '' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(validFromMs),
    notAfterDate: new Date(validToMs),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      {
        name: 'subjectAltName',
        altNames: names.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
      },
    ],
  });
  return { certificatePem: made.cert, privateKeyPem: made.private };
}
