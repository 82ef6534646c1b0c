import { existsSync } from 'node:fs';
import { join } from 'node:path';

// Generators, linters and readers by other people. They are larger than the service, so they have a package.json and a
// lock file of their own here, and only those who run these tests install them: npm run tools.

/** For the option `skip` of a test that needs them: what to run first, or false. */
export function skipWithoutTools(): string | false {
  const folders = [import.meta.dirname, join(import.meta.dirname, '..', 'checkers')];
  return folders.every((folder) => existsSync(join(folder, 'node_modules')))
    ? false
    : 'npm run tools installs what it needs';
}

/** A file of the compiler that `npm run check` uses. */
export function resolveCompiler(path: string): string {
  return join(import.meta.dirname, '..', 'checkers', 'node_modules', 'typescript', path);
}

/** A package of this folder. Its types are not installed with those of the project, so the caller says what it uses. */
export async function importTool<Module>(name: string): Promise<Module> {
  return (await import(name)) as Module;
}

/** The URL of a file of a package of this folder. */
export function resolveTool(specifier: string): string {
  return import.meta.resolve(specifier);
}

/** What is used of TypeScript 5: the compiler of the project, version 7, has no such interface. */
export interface Typescript {
  readonly ScriptTarget: { readonly Latest: number };
  createSourceFile(path: string, text: string, target: number, hasParents: boolean): SourceFile;
  isRegularExpressionLiteral(node: SyntaxNode): boolean;
  forEachChild(node: SyntaxNode, visit: (child: SyntaxNode) => void): void;
}

export interface SyntaxNode {
  readonly kind: number;
  readonly text: string;
  readonly end: number;
  getStart(): number;
}

interface SourceFile extends SyntaxNode {
  getLineAndCharacterOfPosition(position: number): { readonly line: number };
}

export async function importTypescript(): Promise<Typescript> {
  return (await importTool<{ default: Typescript }>('typescript')).default;
}
