import { mkdir, realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../../lib/errors.ts';
import type { Log } from '../migrate.ts';
import { findBinaries } from './binaries.ts';
import { createCluster, tailOfLog, urlOf } from './cluster.ts';
import { type DataFolder, exists, findDataFolder } from './dataFolder.ts';
import { type FolderLock, type Holder, type HolderKind, lockFolder, readHolder } from './folderLock.ts';
import { type Server, type Settings, startServer } from './server.ts';

export interface EmbeddedOptions {
  /** Has the cluster, or a pointer to it; made when missing. */
  readonly dataDir: string;
  readonly log: Log;
  /** Default `service`. */
  readonly kind?: HolderKind;
  /** Settings of Postgres that differ from the default; tests set `fsync: 'off'`. */
  readonly settings?: Settings;
}

/** A running cluster that ends with this process, however that ends. */
export interface Embedded {
  /** postgres://… with the password of the superuser. */
  readonly url: string;
  /** Fast shutdown; settles when Postgres has ended and the data folder is free. */
  stop(): Promise<void>;
  /** Settles when Postgres has ended: with null after `stop`, else with the error to show before giving up. */
  readonly exited: Promise<Error | null>;
}

/** Another process has the data folder. The message is for the person who started this one. */
export class DataDirInUseError extends Error {
  override name = 'DataDirInUseError';
  readonly holder: Holder;

  constructor(dataDir: string, holder: Holder) {
    super(
      `The data folder ${dataDir} is in use by ${holder.pid === process.pid ? 'this very process' : 'another process'}: ` +
        `pid ${holder.pid} (${holder.kind}), since ${new Date(holder.sinceMs).toISOString()}. ` +
        `Stop it (kill ${holder.pid}), set DATA_DIR to another folder, or set DATABASE_URL to a Postgres that several processes share.`,
    );
    this.holder = holder;
  }
}

const COMMAND_WAIT_MS = 30_000;
const POLL_MS = 50;

/**
 * Starts the Postgres of a data folder, with initdb the first time, and after recovery when it crashed.
 * Waits up to 30 s for a command that uses the folder. Throws DataDirInUseError when somebody else still has it,
 * NoBinariesError when there is no Postgres to start, and an Error that quotes Postgres when it does not start.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  await mkdir(options.dataDir, { recursive: true });
  const dataDir = await realpath(options.dataDir);
  const lock = await lockAfterCommands(dataDir, options);
  try {
    const folder = await findDataFolder(dataDir, options.log);
    const binaries = await findBinaries(folder);
    if (!(await exists(`${folder.dir}/cluster`))) {
      options.log('initializing embedded Postgres', { dir: folder.dir });
      await createCluster(folder, binaries, options.settings?.['fsync'] !== 'off');
    }
    options.log('starting embedded Postgres', { dir: folder.dir });
    const server = await startServer(folder, binaries, options.settings ?? {}, options.log);
    await lock.publish({ port: server.port, dir: folder.dir });
    const url = await urlOf(folder.dir, server.port);
    return createEmbedded(url, server, folder, lock, options.log);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The address of the cluster that a living process runs in this data folder, and what it is; null when none does. */
export async function connectEmbedded(dataDir: string): Promise<{ url: string; kind: HolderKind } | null> {
  try {
    const holder = await readHolder(await realpath(dataDir));
    if (!holder?.cluster) return null;
    return { url: await urlOf(holder.cluster.dir, holder.cluster.port), kind: holder.kind };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/**
 * Does a command's work on the cluster of a data folder: beside the service that runs it (waiting up to 30 s
 * while it starts), else on a cluster started for this work alone, after any other command has ended.
 * Throws as `startEmbedded` does.
 */
export async function withEmbedded<T>(
  options: Omit<EmbeddedOptions, 'kind'>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const untilMs = Date.now() + COMMAND_WAIT_MS;
  for (;;) {
    const running = await connectEmbedded(options.dataDir);
    if (running?.kind === 'service') return work(running.url);
    const own = await startEmbedded({ ...options, kind: 'command' }).catch((error: unknown) => {
      if (error instanceof DataDirInUseError && error.holder.kind === 'service' && Date.now() < untilMs) {
        return null; // a service that is still starting, or just ending
      }
      throw error;
    });
    if (own) return work(own.url).finally(() => own.stop());
    await sleep(POLL_MS);
  }
}

async function lockAfterCommands(dataDir: string, options: EmbeddedOptions): Promise<FolderLock> {
  const untilMs = Date.now() + COMMAND_WAIT_MS;
  for (let isFirst = true; ; isFirst = false) {
    const outcome = await lockFolder(dataDir, options.kind ?? 'service');
    if ('lock' in outcome) return outcome.lock;
    const holder = outcome.holder;
    if (holder.kind === 'service' || Date.now() > untilMs) throw new DataDirInUseError(dataDir, holder);
    if (isFirst) options.log('waiting for a command that uses the data folder', { pid: holder.pid });
    await sleep(POLL_MS);
  }
}

function createEmbedded(
  url: string,
  server: Server,
  folder: DataFolder,
  lock: FolderLock,
  log: Log,
): Embedded {
  let stopping: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await server.process.stop();
    await lock.release();
    log('embedded Postgres stopped');
  };
  const exited = server.process.ended.then(async (outcome) => {
    if (stopping) return null;
    return new Error(`Embedded Postgres ended unexpectedly (${outcome}).\n${await tailOfLog(folder)}`);
  });
  server.process.unref();
  return {
    url,
    exited,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}
