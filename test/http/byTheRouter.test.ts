// The tests of polled routes once more, answered by the router instead of before it: both must be the same. What is
// about memory rather than about the way of an answer (the oracle, tenancy) is not asked twice.
process.env['FLEET_TEST_WAY'] = 'router';

await import('./areasContains.test.ts');
await import('./areasDetail.test.ts');
await import('./areasList.test.ts');
await import('./conventions.test.ts');
await import('./devices.test.ts');
await import('./nearest.test.ts');
await import('./refusalOrder.test.ts');
await import('./scopes.test.ts');
