import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { importTool, resolveCompiler, resolveTool } from '../../tools/tools.ts';

const exec = promisify(execFile);

/** What is used of the generators: npm run tools installs them, see test/tools/tools.ts. */
interface OpenapiTypescript {
  default(description: string): Promise<readonly object[]>;
  astToString(ast: readonly object[]): string;
}
interface HeyApi {
  createClient(options: object): Promise<unknown>;
}
interface Orval {
  generate(options: object): Promise<void>;
}

/** The types of a description, as openapi-typescript makes them. */
async function typesOf(description: string): Promise<string> {
  const { default: openapiTypes, astToString } = await importTool<OpenapiTypescript>('openapi-typescript');
  return astToString(await openapiTypes(description));
}

/** Clients of three generators in a folder: `types.ts` with openapi-fetch, `hey-api/index.ts` and `orval.ts`. */
export async function generateClients(description: string, base: string, folder: string): Promise<void> {
  const input = join(folder, 'openapi.json');
  await writeFile(input, description);
  await writeFile(join(folder, 'types.ts'), await typesOf(description));
  await mkdir(join(folder, 'node_modules'));
  const openapiFetch = join(dirname(fileURLToPath(resolveTool('openapi-fetch'))), '..');
  await symlink(openapiFetch, join(folder, 'node_modules', 'openapi-fetch'));
  const output = join(folder, 'hey-api');
  await mkdir(output);
  const { createClient } = await importTool<HeyApi>('@hey-api/openapi-ts');
  await createClient({
    input,
    output: { path: output, module: { extension: '.ts' } },
    plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
    logs: { level: 'silent', file: false },
  });
  const orval = await importTool<Orval>('orval');
  await withoutConsole(() =>
    orval.generate({
      input: { target: input },
      output: { target: join(folder, 'orval.ts'), client: 'fetch', mode: 'single', baseUrl: base },
    }),
  );
}

/** Some generators congratulate on the console, and have no option against it. */
async function withoutConsole(work: () => Promise<void>): Promise<void> {
  const { log } = console;
  console.log = () => undefined;
  try {
    await work();
  } finally {
    console.log = log;
  }
}

const OPTIONS = [
  ...['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2024', '--lib', 'es2024,dom'],
  ...['--module', 'nodenext', '--types', '', '--allowImportingTsExtensions', '--verbatimModuleSyntax'],
];

/** Errors of the compiler about programs in a folder, "file(line,column): error …", one each. */
export async function compile(folder: string, files: readonly string[]): Promise<string[]> {
  const tsc = resolveCompiler(join('bin', 'tsc'));
  try {
    await exec(process.execPath, [tsc, ...OPTIONS, ...files], { cwd: folder });
    return [];
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const errors = stdout.split('\n').filter((line) => /^\S+\(\d+,\d+\): error/.test(line));
    if (errors.length === 0) throw new Error(`the compiler failed: ${stdout}${stderr}`, { cause: error });
    return errors;
  }
}
