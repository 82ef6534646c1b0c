import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { selfSignedCertificate } from '../../src/cli/commands/webhook.ts';

const FROM_MS = Date.UTC(2026, 2, 1, 12, 30, 45);
const TO_MS = Date.UTC(2051, 0, 2, 3, 4, 5);

test('a self-signed certificate is valid for its names and times, and may sign no other certificate', async () => {
  const names = ['localhost', 'hook.example.com', '127.0.0.1', '2001:db8::5'];
  const made = await selfSignedCertificate(names, FROM_MS, TO_MS);
  const certificate = new X509Certificate(made.certificatePem);
  assert.ok(certificate.verify(certificate.publicKey));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(made.privateKeyPem)));
  assert.ok(certificate.checkIssued(certificate));
  assert.equal(certificate.subject, 'CN=localhost');
  for (const name of ['localhost', 'hook.example.com']) assert.equal(certificate.checkHost(name), name);
  for (const name of ['example.com', 'a.localhost']) assert.equal(certificate.checkHost(name), undefined);
  for (const ip of ['127.0.0.1', '2001:db8::5']) assert.equal(certificate.checkIP(ip), ip);
  assert.equal(certificate.checkIP('127.0.0.2'), undefined);
  assert.deepEqual(
    [certificate.validFromDate.getTime(), certificate.validToDate.getTime()],
    [FROM_MS, TO_MS],
  );
  assert.equal(certificate.ca, false);
});
