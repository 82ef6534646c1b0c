import { fail, ok, type Result } from '../lib/result.ts';
import { parseName } from './optionParsers.ts';

const GROUPS_MAX = 50;

/**
 * The groups of a device: each a name, trimmed, in the order given and each once; blank ones are left out. At most
 * 50. The error completes the sentence "--groups …".
 */
export function parseGroups(entries: readonly string[]): Result<readonly string[], string> {
  const groups = new Set<string>();
  for (const entry of entries) {
    if (entry.trim() === '') continue;
    const name = parseName(entry);
    if (!name.ok) return fail(`has a group that ${name.error}`);
    groups.add(name.value);
  }
  return groups.size > GROUPS_MAX ? fail(`has more than ${GROUPS_MAX} groups`) : ok([...groups]);
}
