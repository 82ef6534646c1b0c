// Every test of a polled route once more, answered by the router instead of before it: both must be the same.
process.env['FLEET_TEST_WAY'] = 'router';

await import('./areasContains.test.ts');
await import('./areasDetail.test.ts');
await import('./areasList.test.ts');
await import('./conventions.test.ts');
await import('./devices.test.ts');
await import('./nearest.test.ts');
await import('./nearestOracle.test.ts');
await import('./refusalOrder.test.ts');
await import('./scopes.test.ts');
await import('./tenancy.test.ts');
