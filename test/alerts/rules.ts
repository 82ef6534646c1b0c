import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { PROJECT } from '../guide/guide.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
}

interface RulesFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

const MINUTES: Readonly<Record<string, number>> = { s: 1 / 60, m: 1, h: 60, d: 24 * 60 };
/** No alert has to hold for longer, however long it has to in the file: how long that is decides nothing but when it fires. */
const HOLD_MAX_MINUTES = 5;
const WINDOW = /(?<=\[|offset )(\d+)([smhd])/g;

/** The rules of deploy/prometheus/alerts.yml. */
export const readRules = (): readonly Rule[] => readFile().groups.flatMap(({ rules }) => rules);

const readFile = (): RulesFile =>
  parse(readFileSync(join(PROJECT, 'deploy', 'prometheus', 'alerts.yml'), 'utf8')) as RulesFile;

/** The same file, where a minute of windows and of `for` takes so long. Nothing else of an expression is changed. */
export function rulesWithMinutesOf(minuteMs: number): string {
  const shortened = (count: string, unit: string, mostMinutes = Number.POSITIVE_INFINITY): string =>
    `${Math.ceil(Math.min(Number(count) * (MINUTES[unit] ?? Number.NaN), mostMinutes) * minuteMs)}ms`;
  const groups = readFile().groups.map((group) => ({
    ...group,
    rules: group.rules.map((rule) => {
      const [, count = '0', unit = 'm'] = /^(\d+)([smhd])$/.exec(rule.for ?? '') ?? [];
      return {
        ...rule,
        expr: rule.expr.replaceAll(WINDOW, (_, n: string, of: string) => shortened(n, of)),
        for: shortened(count, unit, HOLD_MAX_MINUTES),
      };
    }),
  }));
  return JSON.stringify({ groups });
}
