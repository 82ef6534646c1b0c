import { collectGarbage } from '../feeds/changes.ts';
import { type Profile, profile } from '../measure/profile.ts';
import { type Usage, usageNow } from '../measure/usage.ts';
import { type BenchService, startBenchService } from '../setup/service.ts';
import { answerQuestions } from '../worker.ts';

export type PodQuestion =
  | {
      readonly kind: 'start';
      readonly databaseUrl: string;
      readonly redisUrl: string | null;
      readonly variables?: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'usage' }
  /** The same after what nothing refers to was freed. */
  | { readonly kind: 'collected' }
  | { readonly kind: 'profile'; readonly of: string }
  /** Ends the profile. `calls` is the number of calls since its start. */
  | { readonly kind: 'profiled'; readonly calls: number }
  | { readonly kind: 'stop' };

export interface PodReply extends Usage {
  /** Of the API and of the ingest port. Empty while the service does not run. */
  readonly url: string;
  readonly ingestUrl: string;
  /** Of the heap of JavaScript. */
  readonly heapMb: number;
  /** The answer to `profiled`. */
  readonly profile: Profile | null;
}

// A worker: one pod as it is deployed, except that it may send to the loopback. NODE_EXTRA_CA_CERTS, set before this
// process starts, adds trusted certificates.
let service: BenchService | null = null;
let profiling: { readonly profile: Promise<Profile>; readonly end: (calls: number) => void } | null = null;
answerQuestions(async (question: PodQuestion): Promise<PodReply> => {
  if (question.kind === 'start') {
    const { databaseUrl, redisUrl, variables } = question;
    const all = { WEBHOOK_ALLOW_NETS: '127.0.0.0/8', ...variables };
    service = await startBenchService(databaseUrl, redisUrl, all);
  }
  if (question.kind === 'stop') {
    await service?.[Symbol.asyncDispose]();
    service = null;
  }
  if (question.kind === 'collected') for (let n = 0; n < 2; n++) collectGarbage();
  if (question.kind === 'profile') profiling = startProfile(question.of);
  let profiled: Profile | null = null;
  if (question.kind === 'profiled' && profiling !== null) {
    profiling.end(question.calls);
    profiled = await profiling.profile;
  }
  const { url = '', ingestUrl = '' } = service ?? {};
  const heapMb = process.memoryUsage().heapUsed / 2 ** 20;
  return { url, ingestUrl, ...usageNow(), heapMb, profile: profiled };
});

function startProfile(of: string) {
  const ended = Promise.withResolvers<number>();
  return { profile: profile(of, () => ended.promise), end: ended.resolve };
}
