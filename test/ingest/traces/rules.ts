/** The sentences that the stories prove: the five rules of the API document, and what follows from them. */
export const RULES = {
  atOnce: 'With dwell_seconds = 0 an entry event is produced as soon as the device is inside.',
  minimumStay:
    'With dwell_seconds > 0 the entry event is produced only after the device has stayed inside for at least that ' +
    'many seconds, measured on the GPS timestamps of the received points, not on the server clock.',
  reset:
    'If the device leaves before the time has elapsed, the count resets; a later entry starts from zero.',
  passThrough: 'A pass-through shorter than the minimum stay produces neither an entry nor an exit.',
  exitAfterEntry: 'An exit is produced only after a confirmed entry.',

  noTimer: '>= on GPS time, evaluated when a point arrives, never by a timer.',
  confirmingPoint:
    "The entry's timestamp and position are those of the point that confirmed it; the first inside point is in " +
    'data.enteredAt.',
  firstOutside: 'An exit has those of the first outside point.',
  order: 'One point touching several areas: exits first, then entries, each by area id.',
  between: 'Passing through between two points without a point inside: nothing.',
  late: 'A point older than the newest one evaluated for its device moves neither the latest position nor dwell; late points give no events.',
  identity:
    'Sending the same batch again changes nothing: (imei, recorded_at to the millisecond) is the identity, the ' +
    'first stored point stands (within one batch, the first in its order).',
  timeOrder: 'Points of one batch are evaluated in time order per device.',

  changed:
    'Area changed while a device is inside: no event at the change; the next point is evaluated by the new shape and ' +
    'the kept state.',
  dwellChanged: 'Dwell changed while pending: kept start, new threshold, at the next point.',
  deleted: 'Area deleted: its states vanish without an exit.',
  newArea: 'New area around a parked device: entry at the next point, dwell counted from it.',
  nameThen: 'areaName: the name at that time; dwellSeconds: the threshold of the area.',

  boundary: 'A point on an edge or vertex is inside.',
  straightEdges: 'Edges are straight in longitude/latitude (RFC 7946 3.1.1).',
  shortWay: 'An edge spanning more than 180° of longitude goes the short way over the antimeridian.',
  margin: 'buffer_m: maximum distance from the track.',
  place: 'radius_m: only circle (minimum 25) and point (default 50 when omitted).',
  geodesic: 'Distances are metres on the WGS84 ellipsoid.',

  watches: 'An area watches every device that its owner can see, and no other.',
  privateArea: "A private area of a member watches the member's private devices and the shared ones.",
  sharedArea: 'A shared area watches the shared devices and the private devices of every member.',
  readers:
    'An event is shared only when both area and device are; else it is private to the account that owns the ' +
    'private one.',
} as const;
