import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { invariant } from '../../src/base/invariant.ts';

/** A fenced block: the first word behind the fence is its language, the second the name that tests know it by. */
export interface ReadmeBlock {
  readonly language: string;
  readonly name: string | null;
  readonly text: string;
  /** Of its first line in the file, from 1. */
  readonly line: number;
}

export const PROJECT = join(import.meta.dirname, '..', '..');
export const README = readFileSync(join(PROJECT, 'README.md'), 'utf8');

const FENCED = /^```(\w*)(?: (\S+))?\n(.*?)^```$/gms;

export const readmeBlocks: readonly ReadmeBlock[] = [...README.matchAll(FENCED)].map((match) => ({
  language: match[1] ?? '',
  name: match[2] ?? null,
  text: match[3] ?? '',
  line: README.slice(0, match.index).split('\n').length + 1,
}));

/** The README without its blocks. */
export const PROSE = README.replace(FENCED, '');

/** The text of a named block, with what stands there for an example put in place; each must occur in it. */
export function readmeBlock(name: string, replacements: Readonly<Record<string, string>> = {}): string {
  const [found, ...more] = readmeBlocks.filter((block) => block.name === name);
  invariant(found !== undefined && more.length === 0, `the README has one block named ${name}`);
  return Object.entries(replacements).reduce((text, [example, real]) => {
    invariant(text.includes(example), `${name} says ${example}`);
    return text.replaceAll(example, real);
  }, found.text);
}

/** The prose under a heading, down to the next of the same or a higher level. */
export function readmeSection(heading: string): string {
  const start = PROSE.search(new RegExp(`^#+ ${heading}$`, 'm'));
  invariant(start !== -1, `the README has a section ${heading}`);
  const level = /^#+/.exec(PROSE.slice(start))?.[0].length ?? 1;
  const rest = PROSE.slice(start + level);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end === -1 ? rest : rest.slice(0, end);
}
