import { type WritePorts, writeWorlds } from '../../changelog/writeWorlds.ts';
import {
  type AreaSize,
  deleteArea,
  lockArea,
  lockAreaQuota,
  selectAreasByExternalId,
  selectExternalIds,
} from '../areas.sql.ts';
import type { AreaWriter } from '../saveArea.ts';
import { dryRunImport, importAreas } from './importAreas.ts';
import type { ImportPlan } from './importPlan.ts';
import type { FileFeature, Surplus, SyncedArea, SyncTarget, SyncWrites } from './syncAreas.ts';

/** Areas that are deleted in one transaction. */
const DELETED_AT_A_TIME = 200;

/** The areas of an account in the database: see SyncTarget. */
export class DatabaseTarget implements SyncTarget {
  readonly turns: SyncTarget['turns'];
  readonly #ports: WritePorts;
  readonly #writer: AreaWriter;
  readonly #worldId: number | null;

  /** `worldId`: the world in which all areas of the file shall be; null: what is new in that of the account. */
  constructor(ports: WritePorts, writer: AreaWriter, worldId: number | null) {
    this.turns = ports.turns;
    this.#ports = ports;
    this.#writer = writer;
    this.#worldId = worldId;
  }

  async stored(externalIds: readonly string[]): Promise<ReadonlyMap<string, SyncedArea>> {
    const { accountId, worldIds } = this.#writer;
    const areas = await selectAreasByExternalId(this.#ports.sql, accountId, externalIds);
    const seen = areas.filter(({ worldId }) => worldIds.includes(worldId));
    const isMisplaced = (worldId: number): boolean => this.#worldId !== null && worldId !== this.#worldId;
    return new Map(
      seen.map(({ definition, worldId }) => [
        definition.externalId as string,
        { definition, isMisplaced: isMisplaced(worldId) },
      ]),
    );
  }

  write(
    _features: readonly FileFeature[],
    plan: ImportPlan,
    dryGrowth: AreaSize | null,
  ): Promise<SyncWrites> {
    return dryGrowth !== null
      ? dryRunImport(this.#ports, this.#writer, plan, dryGrowth)
      : importAreas(this.#ports, this.#writer, plan, this.#worldId);
  }

  async surplus(isInFile: (externalId: string) => boolean): Promise<Surplus> {
    const { accountId, worldIds } = this.#writer;
    const stored = await selectExternalIds(this.#ports.sql, accountId, worldIds);
    const areas = stored.filter(({ externalId }) => !isInFile(externalId));
    const vertices = areas.reduce((sum, area) => sum + area.vertices, 0);
    return { ids: areas.map(({ id }) => id), size: { areas: areas.length, vertices } };
  }

  async *prune(ids: readonly number[]): AsyncGenerator<number, void> {
    for (let at = 0; at < ids.length; at += DELETED_AT_A_TIME)
      yield await this.#delete(ids.slice(at, at + DELETED_AT_A_TIME));
  }

  #delete(ids: readonly number[]): Promise<number> {
    const { accountId, worldIds } = this.#writer;
    return writeWorlds(this.#ports, async ({ tx, changed }) => {
      const found: { id: number; worldId: number }[] = [];
      for (const id of ids) {
        const area = await lockArea(tx, worldIds, id);
        if (area !== undefined) found.push({ id, worldId: area.worldId });
      }
      await lockAreaQuota(tx, accountId);
      for (const { id } of found) await deleteArea(tx, worldIds, id);
      for (const [worldId, areas] of Map.groupBy(found, (area) => area.worldId)) {
        changed({ kind: 'area', worldId, entityIds: areas.map(({ id }) => id) });
      }
      return found.length;
    });
  }
}
