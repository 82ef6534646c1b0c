import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { selfSignedCertificate } from '../../src/cli/commands/webhook.ts';

const FROM_MS = Date.UTC(2026, 2, 1, 12, 30, 45);
const TO_MS = Date.UTC(2051, 0, 2, 3, 4, 5);

describe('a self-signed certificate', () => {
  let certificate: X509Certificate;
  let privateKeyPem: string;
  before(async () => {
    const names = ['localhost', 'hook.example.com', '127.0.0.1', '2001:db8::5'];
    const made = await selfSignedCertificate(names, FROM_MS, TO_MS);
    certificate = new X509Certificate(made.certificatePem);
    privateKeyPem = made.privateKeyPem;
  });

  test('is signed with the key that comes with it', () => {
    assert.ok(certificate.verify(certificate.publicKey));
    assert.ok(certificate.checkPrivateKey(createPrivateKey(privateKeyPem)));
    assert.ok(certificate.checkIssued(certificate));
  });

  test('is valid for its names and addresses and for no others', () => {
    assert.equal(certificate.subject, 'CN=localhost');
    for (const name of ['localhost', 'hook.example.com']) assert.equal(certificate.checkHost(name), name);
    for (const name of ['example.com', 'a.localhost']) assert.equal(certificate.checkHost(name), undefined);
    for (const ip of ['127.0.0.1', '2001:db8::5']) assert.equal(certificate.checkIP(ip), ip);
    assert.equal(certificate.checkIP('127.0.0.2'), undefined);
  });

  test('is valid from and to the given times', () => {
    assert.equal(certificate.validFromDate.getTime(), FROM_MS);
    assert.equal(certificate.validToDate.getTime(), TO_MS);
  });

  test('may sign no other certificate', () => {
    assert.equal(certificate.ca, false);
  });
});
