import type { KeyState } from '../../access/keyState.ts';
import type { Snapshot } from '../../changelog/snapshot.ts';
import type { WorldWatch } from '../../changelog/worldWatch.memory.ts';
import type { Touched } from '../waitRoom.ts';
import { type GroupPorts, placeAt, StreamGroup } from './streamGroup.ts';
import type { StreamPlace } from './streamReader.ts';

/** The groups of a pod, by what their readers want and by the worlds that they see. */
export class StreamGroups {
  readonly #ports: GroupPorts;
  readonly #watch: WorldWatch;
  readonly #byName = new Map<string, StreamGroup>();
  readonly #byWorld = new Map<number, Set<StreamGroup>>();

  constructor(ports: GroupPorts, watch: WorldWatch) {
    this.#ports = ports;
    this.#watch = watch;
  }

  /** The group for a reader at this place; a new one begins with everything sent up to `followed`. */
  of({ accountId, worldIds }: KeyState, place: StreamPlace, followed: Snapshot): StreamGroup {
    const name = nameOf(accountId, worldIds, place);
    const present = this.#byName.get(name);
    if (present !== undefined && !present.isOver) return present;
    const group = new StreamGroup(this.#ports, { accountId, worldIds }, placeAt(place, followed));
    this.#byName.set(name, group);
    for (const worldId of worldIds) {
      this.#watch.follow(worldId);
      const groups = this.#byWorld.get(worldId);
      if (groups === undefined) this.#byWorld.set(worldId, new Set([group]));
      else groups.add(group);
    }
    return group;
  }

  /** The last reader of the group has gone. */
  drop(group: StreamGroup): void {
    const { accountId, worldIds } = group.caller;
    const name = nameOf(accountId, worldIds, group.place);
    if (this.#byName.get(name) === group) this.#byName.delete(name);
    for (const worldId of worldIds) {
      this.#watch.unfollow(worldId);
      const groups = this.#byWorld.get(worldId);
      groups?.delete(group);
      if (groups?.size === 0) this.#byWorld.delete(worldId);
    }
  }

  /** Notifies the groups that see these worlds of what is new in them, and returns those. */
  touchedBy(touched: Touched): Set<StreamGroup> {
    const groups = new Set<StreamGroup>();
    for (const worldId of [...touched.devices, ...touched.events]) {
      for (const group of this.#byWorld.get(worldId) ?? []) groups.add(group);
    }
    for (const group of groups) group.note(touched);
    return groups;
  }
}

function nameOf(accountId: number, worldIds: readonly number[], { devices, events }: StreamPlace): string {
  return `${accountId} ${worldIds.join()} ${devices !== null} ${events !== null}`;
}
