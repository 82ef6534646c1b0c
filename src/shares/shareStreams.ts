import type { LiveBody, LiveChunk, StreamSink } from '../http/answer.ts';
import { liveChunk } from '../http/longBody.ts';
import { formatIso } from '../lib/time.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';
import type { ShareState } from './share.ts';
import type { SharedDevice, SharedFleet, SharedFleetPorts } from './sharedFleet.ts';

/** Open streams of one share on one pod, and of all shares of an account. */
const STREAMS_PER_SHARE = 1_000;
const STREAMS_PER_ACCOUNT = 2_000;
const LOOK_MS = 500;
const HEARTBEAT_MS = 10_000;
/** A reader that has not taken so much is cut off: it may connect again. */
const PENDING_MAX_BYTES = 64 * 1024;

interface ShareStreamPorts extends Pick<SharedFleetPorts, 'shares' | 'clock' | 'turns'> {
  readonly shared: SharedFleet;
  readonly log: { warn(fields: object, message: string): void };
}

interface ShareReader {
  readonly sink: StreamSink;
  /** The messages of the vehicles as they were sent, by their ids. */
  readonly sent: Map<number, string>;
  beatMs: number;
}

/** A vehicle as it is sent to all readers of a share. */
interface ToldDevice {
  readonly id: number;
  readonly text: string;
}

/** The readers of one share. */
interface Watched {
  share: ShareState;
  readonly readers: Set<ShareReader>;
  isLooking: boolean;
  /** The last view, and the texts that were made from it. */
  view: readonly SharedDevice[];
  told: readonly ToldDevice[];
}

/** What was sent last: most readers lack the same. */
interface LastSent {
  news: string;
  chunk: LiveChunk;
}

/**
 * The streams of shares: `device` for each vehicle and each change of it, `heartbeat`, and `ended` when the share has. One
 * timer looks at all shares that somebody watches, at each once for all its readers.
 */
export class ShareStreams {
  readonly #ports: ShareStreamPorts;
  /** By fingerprint. */
  readonly #watched = new Map<string, Watched>();
  readonly #ofAccounts = new Map<number, number>();
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ports: ShareStreamPorts) {
    this.#ports = ports;
    ports.shares.onDropped((isDropped) => {
      for (const watched of this.#watched.values())
        if (isDropped(watched.share.id, watched.share.accountId)) void this.#look(watched);
    });
  }

  /** Null when the share or its account has as many streams open as may be. */
  open(share: ShareState): LiveBody | null {
    const ofShare = this.#watched.get(share.fingerprint)?.readers.size ?? 0;
    const ofAccount = this.#ofAccounts.get(share.accountId) ?? 0;
    if (ofShare >= STREAMS_PER_SHARE || ofAccount >= STREAMS_PER_ACCOUNT) return null;
    return { attach: (sink) => this.#attach(share, sink) };
  }

  /** Ends all streams; their readers go on elsewhere. */
  close(): void {
    this.#isClosed = true;
    for (const { readers } of this.#watched.values())
      for (const { sink } of readers) sink.end('retry: 500\n\n');
  }

  #attach(share: ShareState, sink: StreamSink): { close(): void } {
    const { fingerprint, accountId } = share;
    const none = { readers: new Set<ShareReader>(), isLooking: false, view: [], told: [] };
    const watched = this.#watched.get(fingerprint) ?? { share, ...none };
    this.#watched.set(fingerprint, watched);
    const reader: ShareReader = { sink, sent: new Map(), beatMs: this.#ports.clock() };
    watched.readers.add(reader);
    this.#count(accountId, 1);
    this.#timer ??= setInterval(() => {
      for (const each of this.#watched.values()) void this.#look(each);
    }, LOOK_MS);
    if (this.#isClosed) sink.end('retry: 500\n\n');
    else void this.#look(watched);
    return { close: () => this.#leave(watched, reader) };
  }

  #leave(watched: Watched, reader: ShareReader): void {
    if (!watched.readers.delete(reader)) return;
    this.#count(watched.share.accountId, -1);
    if (watched.readers.size > 0) return;
    this.#watched.delete(watched.share.fingerprint);
    if (this.#watched.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #count(accountId: number, by: 1 | -1): void {
    const count = (this.#ofAccounts.get(accountId) ?? 0) + by;
    if (count > 0) this.#ofAccounts.set(accountId, count);
    else this.#ofAccounts.delete(accountId);
  }

  /** Sends the readers of a share what they lack, or ends them. Never rejects. */
  async #look(watched: Watched): Promise<void> {
    if (watched.isLooking || this.#isClosed) return;
    watched.isLooking = true;
    try {
      const share = await this.#ports.shared.findByFingerprint(watched.share.fingerprint);
      if (typeof share === 'string') {
        for (const { sink } of watched.readers) sink.end('event: ended\ndata: {}\n\n');
        return;
      }
      watched.share = share;
      const { turns, shared } = this.#ports;
      const view = await shared.devices(share);
      if (view !== watched.view) {
        watched.told = await turns.once(share.accountId, () => view.map(toldDevice));
        watched.view = view;
      }
      await turns.run(share.accountId, this.#sendSteps(watched));
    } catch (error) {
      this.#ports.log.warn({ err: error }, 'a share cannot be looked at; trying again');
    } finally {
      watched.isLooking = false;
    }
  }

  *#sendSteps({ readers, told }: Watched): Steps<void> {
    const pace = new Pace();
    const present = new Set(told.map(({ id }) => id));
    let last = null as LastSent | null;
    for (const reader of readers) {
      if (pace.isDue()) yield* pace.pause();
      const { sink } = reader;
      if (sink.pendingBytes > PENDING_MAX_BYTES) {
        sink.destroy();
        continue;
      }
      const news = this.#newsFor(reader, told, present);
      if (news === '') continue;
      if (last?.news !== news) last = { news, chunk: liveChunk(news) };
      sink.write(last.chunk);
    }
  }

  /** What a reader lacks, which it has then. */
  #newsFor(reader: ShareReader, told: readonly ToldDevice[], present: ReadonlySet<number>): string {
    const { sent } = reader;
    let news = '';
    for (const { id, text } of told) {
      if (sent.get(id) === text) continue;
      sent.set(id, text);
      news += text;
    }
    for (const id of sent.keys()) {
      if (present.has(id)) continue;
      sent.delete(id);
      news += `event: device\ndata: {"id":${id},"removed":true}\n\n`;
    }
    const nowMs = this.#ports.clock();
    if (nowMs - reader.beatMs >= HEARTBEAT_MS) {
      reader.beatMs = nowMs;
      news += `event: heartbeat\ndata: {"at":"${formatIso(nowMs)}"}\n\n`;
    }
    return news;
  }
}

function toldDevice(device: SharedDevice): ToldDevice {
  return { id: device.id, text: `event: device\ndata: ${JSON.stringify(device)}\n\n` };
}
