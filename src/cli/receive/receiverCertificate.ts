import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DAY_MS } from '../../lib/durations.ts';
import { type SelfSignedCertificate, selfSignedCertificate } from './selfSignedCertificate.ts';

const NAMES = ['127.0.0.1', 'localhost'];
const VALID_DAYS = 365;
/** A certificate that ends sooner is replaced. */
const SPARE_DAYS = 1;

/**
 * The certificate of the local webhook receiver, kept in `dataDir` so that a service which trusts it needs no restart
 * when the receiver does. `file` is the certificate alone, as an absolute path.
 */
export async function receiverCertificate(
  dataDir: string,
  nowMs: number,
): Promise<{ readonly file: string; readonly certificate: SelfSignedCertificate }> {
  const folder = resolve(dataDir);
  const file = join(folder, 'webhook-receiver.pem');
  const keyFile = join(folder, 'webhook-receiver-key.pem');
  const [certificatePem, privateKeyPem] = await Promise.all([readIfThere(file), readIfThere(keyFile)]);
  if (
    certificatePem !== null &&
    privateKeyPem !== null &&
    endsMs(certificatePem) > nowMs + SPARE_DAYS * DAY_MS
  ) {
    return { file, certificate: { certificatePem, privateKeyPem } };
  }
  const certificate = await selfSignedCertificate(NAMES, nowMs - DAY_MS, nowMs + VALID_DAYS * DAY_MS);
  await mkdir(folder, { recursive: true });
  await writeFile(keyFile, certificate.privateKeyPem, { mode: 0o600 });
  await writeFile(file, certificate.certificatePem);
  return { file, certificate };
}

function endsMs(certificatePem: string): number {
  return new X509Certificate(certificatePem).validToDate.getTime();
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
