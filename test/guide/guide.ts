import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { invariant } from '../../src/lib/errors.ts';

/** A fenced block: the first word behind the fence is its language, the second the name that tests know it by. */
export interface GuideBlock {
  readonly language: string;
  readonly name: string | null;
  readonly text: string;
  /** The page that it stands on, and the line of its first line there, from 1. */
  readonly page: string;
  readonly line: number;
}

/** A page of the guide: the guide, or one of docs/. */
export interface GuidePage {
  /** From the project's folder, such as `docs/webhooks.md`. */
  readonly path: string;
  readonly text: string;
  /** The text without its blocks. */
  readonly prose: string;
}

export const PROJECT = join(import.meta.dirname, '..', '..');

const FENCED = /^```(\w*)(?: (\S+))?\n(.*?)^```$/gms;

export const guidePages: readonly GuidePage[] = [
  'README.md',
  ...readdirSync(join(PROJECT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].map((path) => {
  const text = readFileSync(join(PROJECT, path), 'utf8');
  return { path, text, prose: text.replace(FENCED, '') };
});

/** The prose of all pages. */
export const PROSE = guidePages.map(({ prose }) => prose).join('\n');

export const guideBlocks: readonly GuideBlock[] = guidePages.flatMap(({ path, text }) =>
  [...text.matchAll(FENCED)].map((match) => ({
    language: match[1] ?? '',
    name: match[2] ?? null,
    text: match[3] ?? '',
    page: path,
    line: text.slice(0, match.index).split('\n').length + 1,
  })),
);

/** The text of a named block, with what stands there for an example put in place; each must occur in it. */
export function guideBlock(name: string, replacements: Readonly<Record<string, string>> = {}): string {
  const [found, ...more] = guideBlocks.filter((block) => block.name === name);
  invariant(found !== undefined && more.length === 0, `the guide has one block named ${name}`);
  return withReal(name, found.text, replacements);
}

/** The same of a file below deploy/. */
export function deployFile(path: string, replacements: Readonly<Record<string, string>> = {}): string {
  return withReal(path, readFileSync(join(PROJECT, 'deploy', path), 'utf8'), replacements);
}

function withReal(name: string, text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((replaced, [example, real]) => {
    invariant(replaced.includes(example), `${name} says ${example}`);
    return replaced.replaceAll(example, real);
  }, text);
}

/** The prose under a heading, down to the next of the same or a higher level; of its whole page under a title. */
export function guideSection(heading: string): string {
  const start = PROSE.search(new RegExp(`^#+ ${heading}$`, 'm'));
  invariant(start !== -1, `the guide has a section ${heading}`);
  const level = /^#+/.exec(PROSE.slice(start))?.[0].length ?? 1;
  const rest = PROSE.slice(start + level);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end === -1 ? rest : rest.slice(0, end);
}
