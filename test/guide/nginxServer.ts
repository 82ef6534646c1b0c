import { chmod, chown, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { invariant } from '../../src/lib/errors.ts';
import { findUnprivilegedAccount } from '../../src/postgres/embedded/dataFolder.ts';
import { spawnWatched } from '../../src/postgres/embedded/watchdog.ts';
import { checkDescribed } from '../support/http/describedAnswer.ts';
import { accepts, findFreePort } from '../support/ports.ts';
import { waitFor } from '../support/waitFor.ts';
import { receiverCertificate } from '../support/webhooks/tlsReceiver.ts';
import { deployFile } from './guide.ts';
import { findProgram } from './programs.ts';

/** What Debian's own nginx.conf brings along, for a process without privileges that keeps to one folder. */
const MAIN_CONF = `
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include fleet.conf;
}
`;

export interface NginxCall {
  readonly method?: string;
  readonly key?: string;
  /** The client's own address; all of 127.0.0.0/8 is this machine. */
  readonly from?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: object | string;
}

export interface NginxReply {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface Nginx {
  call(path: string, options?: NginxCall): Promise<NginxReply>;
  /** Opens a stream; its status is not looked at. */
  open(path: string, key: string, headers?: Readonly<Record<string, string>>): Promise<IncomingMessage>;
  /** As after a change of its configuration. */
  reload(): void;
}

/** For the option `skip`: why nginx cannot be tried here, or false. */
export function skipWithoutNginx(): string | false {
  if (findProgram('nginx') === null) return 'there is no nginx on this machine';
  return process.platform === 'linux' ? false : 'only Linux answers on all of 127.0.0.0/8';
}

/** Starts nginx with deploy/nginx/fleet.conf before two pods; it ends after the test. */
export async function startNginx(
  t: TestContext,
  ports: { readonly api: readonly [number, number]; readonly ingest: number },
): Promise<Nginx> {
  const program = findProgram('nginx');
  invariant(program !== null, 'there is an nginx');
  const folder = await mkdtemp(join(tmpdir(), 'fleet-nginx-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const { certificatePem, privateKeyPem } = await receiverCertificate();
  const port = await findFreePort();
  const files = {
    'certificate.pem': certificatePem,
    'key.pem': privateKeyPem,
    'nginx.conf': MAIN_CONF,
    'fleet.conf': deployFile('nginx/fleet.conf', {
      '10.0.0.11:3000': `127.0.0.1:${ports.api[0]}`,
      '10.0.0.12:3000': `127.0.0.1:${ports.api[1]}`,
      '10.0.0.11:3001': `127.0.0.1:${ports.ingest}`,
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      '/etc/ssl/fleet/fullchain.pem': join(folder, 'certificate.pem'),
      '/etc/ssl/fleet/privkey.pem': join(folder, 'key.pem'),
    }),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  await chmod(folder, 0o755);
  const account = process.getuid?.() === 0 ? await findUnprivilegedAccount() : null;
  if (account !== null) await chown(folder, account.uid, account.gid);
  const log = await open(join(folder, 'nginx.log'), 'w');
  const server = await spawnWatched(
    program,
    ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')],
    { cwd: folder, logFd: log.fd, account },
  );
  await log.close();
  let hasEnded = false;
  void server.ended.then(() => {
    hasEnded = true;
  });
  t.after(() => server.stop());
  await waitFor(async () => {
    if (hasEnded) throw new Error(await readFile(join(folder, 'nginx.log'), 'utf8'));
    return accepts(port);
  });
  const agents = new Map<string, Agent>();
  t.after(() => {
    for (const agent of agents.values()) agent.destroy();
  });
  return {
    reload: () => server.kill('SIGHUP'),
    open: (path, key, headers = {}) =>
      new Promise((resolve, reject) => {
        const target = { host: '127.0.0.1', port, path, ca: certificatePem, agent: false };
        const outgoing = request({ ...target, headers: { 'X-API-Key': key, ...headers } }, resolve);
        outgoing.on('error', reject).end();
        t.after(() => outgoing.destroy());
      }),
    call: (path, options = {}) => {
      const from = options.from ?? '127.0.0.1';
      const agent = agents.get(from) ?? new Agent({ keepAlive: true, maxSockets: 32, ca: certificatePem });
      agents.set(from, agent);
      return send({ host: '127.0.0.1', port, path, localAddress: from, agent }, options);
    },
  };
}

async function send(
  target: RequestOptions & { path: string },
  { method = 'GET', key, headers = {}, body }: NginxCall,
): Promise<NginxReply> {
  const bytes = typeof body === 'object' ? JSON.stringify(body) : body;
  const outgoing = request({
    ...target,
    method,
    headers: {
      ...(key === undefined ? {} : { 'X-API-Key': key }),
      ...(bytes === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
  });
  const answered = new Promise<NginxReply>((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      const taken = text(response).then((sent) => {
        const { statusCode: status = 0, headers: given } = response;
        const isJson = given['content-type']?.includes('json') === true && sent !== '';
        const [path = ''] = target.path.split('?');
        const header = (name: string) => given[name.toLowerCase()]?.toString() ?? null;
        if (isJson) checkDescribed({ method, target: path, status, header, text: sent });
        resolve({ status, text: sent, body: isJson ? JSON.parse(sent) : undefined });
      });
      taken.catch(reject);
    });
  });
  outgoing.end(bytes);
  return answered;
}
