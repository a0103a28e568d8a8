// A job of each kind through openapi-fetch with the types that openapi-typescript makes.
import createClient from 'openapi-fetch';
import type { paths } from './kiln';

const client = createClient<paths>({ baseUrl: process.argv[2] });

function expect(held: boolean, what: string): void {
    if (!held) {
        throw new Error(what);
    }
}

const isPng = (data: Uint8Array): boolean => data[0] === 0x89 && data[1] === 0x50;
const base64 = (data: Uint8Array): string => Buffer.from(data).toString('base64');
const picture = Buffer.concat([Buffer.from('P5 4 3 255\n'), Buffer.from([...Array(12).keys()])]);

const view = await client.GET('/v1/mandelbrot', {
    params: { query: { width: 64, height: 48, format: 'png' } },
    parseAs: 'arrayBuffer',
});
expect(isPng(new Uint8Array(view.data as unknown as ArrayBuffer)), 'GET mandelbrot');
const posted = await client.POST('/v1/mandelbrot', { body: { width: 32, height: 32, format: 'json' } });
expect((posted.data as { width: number }).width === 32, 'POST mandelbrot');
const tile = await client.GET('/v1/mandelbrot/tiles/{z}/{x}/{name}', {
    params: { path: { z: 1, x: 0, name: '1.png' } },
    parseAs: 'arrayBuffer',
});
expect(isPng(new Uint8Array(tile.data as unknown as ArrayBuffer)), 'tile');

const laplacian = await client.POST('/v1/laplacian', {
    body: { image: base64(picture), format: 'png' },
    parseAs: 'arrayBuffer',
});
const lines = new Uint8Array(laplacian.data as unknown as ArrayBuffer);
expect(isPng(lines), 'laplacian');
const jacobi = await client.POST('/v1/jacobi', {
    body: { image: base64(lines), iterations: 10, offset: 32768, format: 'json' },
});
expect((jacobi.data as { sweeps: number }).sweeps === 10, 'jacobi');

const t = [...Array(60).keys()].map((i) => 0.7 * i + 0.1 * Math.sin(i));
const y = t.map((time) => Math.sin((2 * Math.PI * time) / 5));
const curve = await client.POST('/v1/lombscargle', { body: { t, y, maximum_frequency: 0.6 } });
const period = (curve.data as { best_period?: number | null }).best_period ?? 0;
expect(Math.abs(period - 5) < 0.2, 'lombscargle');

const refused = await client.POST('/v1/mandelbrot', { body: { width: 0 } });
expect(refused.error?.status === 422 && refused.error.errors?.[0]?.field === 'width', 'problem');
const devices = await client.GET('/v1/devices');
expect((devices.data?.devices.length ?? 0) > 0, 'devices');
console.log('openapi-fetch with openapi-typescript: a job of each kind ran');
