// A job of each kind through the fetch client that openapi-generator makes.
import { Configuration, DaemonApi, GetMandelbrotFormatEnum, JobsApi } from './generator/index';

const configuration = new Configuration({ basePath: process.argv[2] });
const jobs = new JobsApi(configuration);

function expect(held: boolean, what: string): void {
    if (!held) {
        throw new Error(what);
    }
}

async function bytes(file: Blob): Promise<Uint8Array> {
    return new Uint8Array(await file.arrayBuffer());
}

const isPng = (data: Uint8Array): boolean => data[0] === 0x89 && data[1] === 0x50;
const base64 = (data: Uint8Array): string => Buffer.from(data).toString('base64');
const picture = Buffer.concat([Buffer.from('P5 4 3 255\n'), Buffer.from([...Array(12).keys()])]);

const view = await jobs.getMandelbrot({ width: 64, height: 48, format: GetMandelbrotFormatEnum.Json });
const told = JSON.parse(await (view as Blob).text());
expect(told.width === 64 && told.escaped > 0, 'GET mandelbrot');
const posted = await jobs.postMandelbrot({ mandelbrot: { width: 32, height: 32, format: 'png' } });
expect(isPng(await bytes(posted as Blob)), 'POST mandelbrot');
const tile = await jobs.getMandelbrotTile({ z: 1, x: 0, name: '1.png' });
expect(isPng(await bytes(tile as Blob)), 'tile');

const laplacian = await bytes((await jobs.postLaplacian({
    laplacian: { image: base64(picture), format: 'png' },
})) as Blob);
expect(isPng(laplacian), 'laplacian');
const jacobi = await jobs.postJacobi({
    jacobi: { image: base64(laplacian), iterations: 10, offset: 32768, format: 'json' },
});
expect(JSON.parse(await (jacobi as Blob).text()).sweeps === 10, 'jacobi');

const t = [...Array(60).keys()].map((i) => 0.7 * i + 0.1 * Math.sin(i));
const y = t.map((time) => Math.sin((2 * Math.PI * time) / 5));
const curve = await jobs.postLombScargle({ postLombScargleRequest: { t, y, maximumFrequency: 0.6 } });
expect(Math.abs((curve.bestPeriod ?? 0) - 5) < 0.2, 'lombscargle');
expect((await new DaemonApi(configuration).getDevices()).devices.length > 0, 'devices');
console.log('openapi-generator, TypeScript: a job of each kind ran');
