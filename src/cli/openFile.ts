import { open } from 'node:fs/promises';
import { hasCode } from '../lib/hasCode.ts';
import { fail, ok, type Result } from '../lib/result.ts';

/** The bytes of a file that an operator names; the error is a sentence. */
export async function openFile(path: string): Promise<Result<AsyncIterable<Uint8Array>, string>> {
  try {
    const file = await open(path);
    if (!(await file.stat()).isDirectory()) return ok(file.createReadStream());
    await file.close();
    return fail(`${path} is a folder`);
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM')) throw error;
    return fail(hasCode(error, 'ENOENT', 'ENOTDIR') ? `there is no file ${path}` : `${path} may not be read`);
  }
}
