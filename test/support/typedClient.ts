import { execFile } from 'node:child_process';
import { createRequire, registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);

/** TypeScript types of a description, as an integrator would generate them. */
export async function generateTypes(description: string): Promise<string> {
  // The generator writes with the compiler API of TypeScript 5, which 7 does not have.
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier === 'typescript' ? 'typescript-5' : specifier, context),
  });
  try {
    const { default: generate, astToString } = await import('openapi-typescript');
    return astToString(await generate(description));
  } finally {
    hooks.deregister();
  }
}

const OPTIONS = [
  ...['--noEmit', '--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--skipLibCheck'],
  ...['--target', 'es2024', '--lib', 'es2024,dom', '--module', 'nodenext', '--types', ''],
  ...['--allowImportingTsExtensions', '--verbatimModuleSyntax'],
];

/** Complaints of the compiler about programs in a folder, "file(line,column): error …", one each. */
export async function compile(folder: string, files: readonly string[]): Promise<string[]> {
  const compiler = createRequire(import.meta.url).resolve('typescript/package.json');
  const tsc = join(dirname(compiler), 'bin', 'tsc');
  try {
    await exec(process.execPath, [tsc, ...OPTIONS, ...files], { cwd: folder });
    return [];
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const complaints = stdout.split('\n').filter((line) => /^\S+\(\d+,\d+\): error/.test(line));
    if (complaints.length === 0) throw new Error(`the compiler failed: ${stdout}${stderr}`, { cause: error });
    return complaints;
  }
}
