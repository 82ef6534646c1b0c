import {
  BEFORE_ALL_DEVICES,
  type DevicePlace,
  type ListedDevice,
  selectDevicePage,
} from '../../devices/devices.sql.ts';
import { defineCommand, findAccount, PAGE_ROWS, printPages } from '../command.ts';
import { optional } from '../option.ts';
import { parseEmail } from '../optionParsers.ts';

export const deviceList = defineCommand({
  name: 'device:list',
  summary: 'Prints every device, one JSON line each.',
  options: { email: optional('E', 'only those that this account sees', parseEmail) },
  notes: [
    'organization says whether an organization owns the device, owner who it is. With --email there is no owner, and',
    'the lines are those that device:import reads.',
  ],
  run: (context, { email }) =>
    context.withSession(async ({ sql }) => {
      const account = await findAccount(sql, email);
      if (!account.ok) return account;
      const worldIds = account.value && [account.value.worldId, account.value.organizationWorldId];
      const visible = worldIds?.filter((worldId) => worldId !== null) ?? null;
      return printPages(
        context,
        (last: (ListedDevice & DevicePlace) | null) =>
          selectDevicePage(sql, visible, last ?? BEFORE_ALL_DEVICES, PAGE_ROWS),
        ({ world_id: _, owner, ...fields }) => (visible === null ? { ...fields, owner } : fields),
      );
    }),
});
