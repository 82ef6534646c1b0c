import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where an administrator's programs are, which the PATH of other users often leaves out. */
const ADMINISTRATION = ['/usr/sbin', '/usr/local/sbin', '/sbin'];

/** The path of a program of this machine, or null. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean), ...ADMINISTRATION];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
