import { ERRORS } from '../../../src/http/answer.ts';
import { type StrictApi, strictApi } from './strictApi.ts';

/** An answer as it was received. */
export interface ReceivedAnswer {
  readonly method: string;
  /** The target of the request, in whatever form it was sent. */
  readonly target: string;
  readonly status: number;
  /** By lower-case name. */
  header(name: string): string | null | undefined;
  readonly text: string;
}

/**
 * Throws when an answer is not as the description of the API says: its status and code for this operation, every
 * field of its body, its content type and the headers that it names. Answers outside of what is described (v2, the
 * ingest listener, …) pass.
 */
export function checkDescribed(answer: ReceivedAnswer, api: () => StrictApi = strictApi): void {
  const path = pathOf(answer.target);
  if (!/^\/api\/(?:v3|webhooks)(?:\/|$)/.test(path) || path.startsWith(PAGE_FILES)) return;
  const mismatch = mismatchOf(answer, path, api());
  if (mismatch === null) return;
  throw new Error(
    `not as described: ${answer.method} ${answer.target} → ${answer.status}: ${mismatch}\n${answer.text.slice(0, 2000)}`,
  );
}

/** No part of the API. */
const PAGE_FILES = '/api/v3/docs/';

/** As the server reads it: a target may come in absolute form, with a stray # for an encoded one. */
function pathOf(target: string): string {
  const path = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, '').replaceAll('#', '%23');
  return (path.split('?', 1)[0] as string).replace(/(?<=.)\/$/, '');
}

type Operations = Readonly<Record<string, { readonly responses: Readonly<Record<string, Response>> }>>;
interface Response {
  readonly $ref?: string;
  readonly headers?: object;
  readonly content?: Readonly<Record<string, object>>;
}

function mismatchOf(answer: ReceivedAnswer, path: string, api: StrictApi): string | null {
  if (answer.method === 'HEAD' && answer.text !== '') return 'HEAD has no body';
  const described = templateOf(path, api);
  const method = answer.method === 'HEAD' ? 'get' : answer.method.toLowerCase();
  if (described === undefined || !(method in described.operations)) return undescribedMismatch(answer, api);
  const at = ['paths', described.template, method, 'responses', String(answer.status)];
  const response = described.operations[method]?.responses[String(answer.status)];
  if (response === undefined) return 'the operation has no answer with this status';
  if (response.$ref === undefined) return responseMismatch(answer, response, at, api);
  const name = response.$ref.slice('#/components/responses/'.length);
  const common = api.document.components['responses']?.[name] as Response;
  return responseMismatch(answer, common, ['components', 'responses', name], api);
}

interface DescribedPath {
  readonly template: string;
  readonly expression: RegExp;
  readonly operations: Operations;
}

/** The described path that a request path belongs to. */
function templateOf(path: string, api: StrictApi): DescribedPath | undefined {
  return pathsOf(api).find(({ expression }) => expression.test(path));
}

const describedPaths = new WeakMap<StrictApi, readonly DescribedPath[]>();

/** Those without parameters come first. */
function pathsOf(api: StrictApi): readonly DescribedPath[] {
  const known = describedPaths.get(api);
  if (known !== undefined) return known;
  const paths = Object.entries(api.document.paths)
    .map(([template, operations]) => ({
      template,
      expression: expressionOf(template),
      operations: operations as Operations,
    }))
    .sort((a, b) => Number(a.template.includes('{')) - Number(b.template.includes('{')));
  describedPaths.set(api, paths);
  return paths;
}

/** An external id may hold slashes, and may be missing with the slash before it. */
function expressionOf(template: string): RegExp {
  const pattern = template.replace('/{externalId}', '(?:/.*)?').replace(/\{\w+\}/g, '[^/]*');
  return new RegExp(`^${pattern}$`);
}

/** Headers that must be described where they are sent. */
const NOTABLE = [
  'Location',
  'Idempotent-Replayed',
  'X-API-Status',
  'X-Unknown-Parameters',
  'ETag',
  'Allow',
  'Deprecation',
  'Retry-After',
];

function responseMismatch(
  answer: ReceivedAnswer,
  response: Response,
  at: readonly string[],
  api: StrictApi,
): string | null {
  const stray = NOTABLE.find((name) => present(answer, name) && !(name in (response.headers ?? {})));
  if (stray !== undefined) return `the header ${stray} is not described`;
  const types = Object.keys(response.content ?? {});
  if (answer.method === 'HEAD') return null;
  if (types.length === 0) return answer.text === '' ? null : 'there should be no body';
  const type = answer.header('content-type')?.split(';', 1)[0] ?? '';
  if (!types.includes(type)) return `the content type ${type} is not described`;
  const body: unknown = type === 'application/json' ? JSON.parse(answer.text) : answer.text;
  return api.mismatchOf([...at, 'content', type, 'schema'], body) ?? codeMismatch(answer.status, body);
}

/** OPTIONS, methods and paths that there are not, and whatever stops a request before its route is looked for. */
function undescribedMismatch(answer: ReceivedAnswer, api: StrictApi): string | null {
  if (answer.method === 'OPTIONS' && answer.status === 204) {
    return present(answer, 'Allow') && answer.text === '' ? null : 'OPTIONS answers with what there is';
  }
  if (answer.method === 'HEAD') return answer.status >= 400 ? null : 'there is no such operation';
  if (answer.status < 400) return 'there is no such operation';
  const body: unknown = JSON.parse(answer.text);
  return api.mismatchOf(['components', 'schemas', 'Error'], body) ?? codeMismatch(answer.status, body);
}

/** A code always has its status; what was too slow to be read has the code of what cannot be read. */
function codeMismatch(status: number, body: unknown): string | null {
  const code = (body as { error?: { code?: keyof typeof ERRORS } } | null)?.error?.code;
  if (code === undefined || (status === 408 && code === 'BAD_REQUEST')) return null;
  return ERRORS[code][0] === status ? null : `${code} has another status`;
}

function present(answer: ReceivedAnswer, name: string): boolean {
  const value = answer.header(name.toLowerCase());
  return value !== null && value !== undefined;
}
