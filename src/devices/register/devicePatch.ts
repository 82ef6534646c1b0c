/** The fields of a device in one line of an import. A missing field leaves the stored value as it is. */
export interface DevicePatch {
  readonly imei: string;
  readonly name?: string | null;
  readonly plate?: string | null;
  readonly model?: string | null;
  readonly groups?: readonly string[];
  /** True: the organization's; false: the account's own. */
  readonly organization?: boolean;
}
