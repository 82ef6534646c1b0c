/** What one line of an import says of a device. A field that is not there is left alone. */
export interface DevicePatch {
  readonly imei: string;
  readonly name?: string | null;
  readonly plate?: string | null;
  readonly model?: string | null;
  readonly groups?: readonly string[];
  /** True: the organization's; false: the account's own. */
  readonly organization?: boolean;
}
