import { openSql } from '../../../src/postgres/sql.ts';
import { packPoints } from './packPoints.ts';

// Packs what there is in the database of its argument, in a process of its own, until it is killed. Says when it begins.
const sql = openSql(process.argv[2] as string, { maxConnections: 2, name: 'test packer' });
await sql`select 1`;
process.stdout.write('packing\n');
await packPoints(sql);
await sql.end();
