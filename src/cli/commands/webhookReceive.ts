import { once } from 'node:events';
import { fail, ok, type Result } from '../../lib/result.ts';
import { SECRET_PREFIX } from '../../webhooks/secretBox.ts';
import { defineCommand } from '../command.ts';
import { optional, required } from '../option.ts';
import { parseWhole } from '../optionParsers.ts';
import { receiverCertificate } from '../receive/receiverCertificate.ts';
import { receiveWebhooks } from '../receive/receiveWebhooks.ts';

const PORT_MAX = 65_535;

export const webhookReceive = defineCommand({
  name: 'webhook:receive',
  summary: 'Receives webhooks on this machine over https and shows them, to try them out.',
  options: {
    port: required('P', 'to listen on; 0 takes a free one', (text) => parseWhole(text, 0, PORT_MAX)),
    secret: optional('S', 'of the endpoint; signatures are verified with it', parseSecret),
  },
  notes: [
    'Its certificate is made once and kept in DATA_DIR. It says how to start the service so that it trusts and',
    'reaches the receiver, and prints a JSON line for each delivery. Ctrl-C ends it with a count of them.',
  ],
  async run({ config, say, interrupted, nowMs }, { port, secret }) {
    const counts = { received: 0, valid: 0, invalid: 0 };
    const { file, certificate } = await receiverCertificate(config.dataDir, nowMs());
    const started = await start(() =>
      receiveWebhooks({
        port,
        certificate,
        secret,
        onReceived: (webhook) => {
          counts.received++;
          if (webhook.signature !== 'unchecked') counts[webhook.signature]++;
          say(JSON.stringify(webhook));
        },
      }),
    );
    if (!started.ok) return started;
    for (const line of instructions(started.value.url, file, secret !== undefined)) say(line);
    if (!interrupted.aborted) await once(interrupted, 'abort');
    await started.value.close();
    return ok(counts);
  },
});

function instructions(url: string, certificateFile: string, isVerifying: boolean): string[] {
  return [
    `receiving at ${url}`,
    'Start the service so that it trusts and reaches it:',
    `  NODE_EXTRA_CA_CERTS='${certificateFile}' WEBHOOK_ALLOW_NETS=127.0.0.0/8 npm start`,
    'Create an endpoint with a key that has manage_webhooks, and test it:',
    `  curl -X POST http://127.0.0.1:3000/api/webhooks -H "X-API-Key: $KEY" -H 'Content-Type: application/json' \\`,
    `    -d '{"url":"${url}","events":["*"]}'`,
    '  curl -X POST http://127.0.0.1:3000/api/webhooks/ID/test -H "X-API-Key: $KEY"',
    ...(isVerifying
      ? []
      : ['To verify signatures, end this and start it again with --secret, as the creation showed it.']),
  ];
}

/** Listening fails for reasons that the caller can change; all else is a mistake of ours. */
async function start<T>(listen: () => Promise<T>): Promise<Result<T, string>> {
  try {
    return ok(await listen());
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return fail('the port is taken; choose another with --port');
    if (code === 'EACCES') return fail('this port needs privileges; choose one above 1023 with --port');
    throw error;
  }
}

function parseSecret(text: string): Result<string, string> {
  return text.startsWith(SECRET_PREFIX) ? ok(text) : fail(`must be a signing secret, ${SECRET_PREFIX}…`);
}
