/*
 * lombscargle_window.h: the window of lombscargle_nufft.h, for device code.
 *
 * I0(β √(1 - (d/8)²)) / I0(β) at d cells from a sample, β = 0.985 · 32π/3, which is best for grids
 * of 1½ cells a frequency. A sample lies z, 0 to 1, behind the eighth of its 16 cells. Cell l sees
 * d = l - 7 - z, where the window is a polynomial in 2z - 1 within 1.3e-15; those of cells l and
 * 15 - l are mirror images.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_WINDOW_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_WINDOW_H

#include "kernels/cuda/lombscargle/lombscargle_nufft.h"

#define WINDOW_BETA  33.007666813716760959
#define WINDOW_LEAD  0.0087133082356286843552 /* 2 I0(β) exp(-β) / 16 */
#define WINDOW_TERMS 13

/* By cell and power. */
static __device__ const double window_terms[LOMBSCARGLE_NUFFT_WINDOW / 2][WINDOW_TERMS] = {
    {7.6884860174949736e-10, -4.082657665015858e-9, 9.7630963702268649e-9, -1.3972005946985942e-8,
     1.340955538252704e-8, -9.1600149390684326e-9, 4.6063267098801969e-9, -1.7352881108502786e-9,
     4.913662399480034e-10, -1.0307305256349515e-10, 1.516218884868344e-11, -1.2327078800428106e-12,
     -1.674971544169745e-14},
    {1.3808213098060622e-6, -3.8656523328312031e-6, 4.9814406825615702e-6, -3.909620120923104e-6,
     2.0805006103138129e-6, -7.8865225050274732e-7, 2.1654682685877108e-7, -4.2402104142864014e-8,
     5.4630754575035572e-9, -3.1029317477593851e-10, -3.5727693902937858e-11,
     9.7119093918674118e-12, -7.7647489871126246e-13},
    {1.3962411150738898e-4, -2.6694707309165229e-4, 2.3241513669877721e-4, -1.2091300366014766e-4,
     4.1226761853342645e-5, -9.3821487535216648e-6, 1.3320581169346768e-6, -7.5730824096299062e-8,
     -1.1465894092969098e-8, 2.9443575022609279e-9, -2.1725058376821083e-10,
     -1.3314160746808587e-11, 3.644861040135016e-12},
    {3.6206624460276018e-3, -4.9876800997396065e-3, 3.0325071115500706e-3, -1.0428327294160107e-3,
     2.0959444832603329e-4, -1.9691324594007071e-5, -1.1727566333600733e-6, 5.710457256051597e-7,
     -5.5446477009028418e-8, -2.1523361708760751e-9, 9.2861208389241044e-10,
     -5.1506757675998033e-11, -5.5759366949417854e-12},
    {3.7892134660946003e-2, -3.7386390401486447e-2, 1.5152129963231721e-2, -2.9276910814706893e-3,
     1.3657712084900822e-4, 5.4599566079026879e-5, -1.0517477297888061e-5, 1.9814775792208074e-7,
     1.469380134187446e-7, -1.4873879110190813e-8, -7.2317474621641005e-10, 2.0224174914823009e-10,
     -4.1133833817373381e-12},
    {1.964785962028976e-1, -1.3120027652731448e-1, 2.9288512528830123e-2, -3.6604399599860978e-4,
     -8.8974705054501716e-4, 1.1342789411958662e-4, 7.8182466937227531e-6, -2.6011994286396827e-6,
     5.3917526587711021e-8, 3.1277900499625014e-8, -2.174679220750851e-9, -2.2940611769507678e-10,
     2.8615879273145923e-11},
    {5.619253710819582e-1, -2.1784242066476356e-1, 4.6167023329524946e-3, 8.6737565965757587e-3,
     -9.0863348337281876e-4, -1.5172579784957712e-4, 2.6720395975239991e-5, 1.3671942082402909e-6,
     -4.454222456065695e-7, -2.7643432824557488e-9, 5.1519558776874177e-9, -9.7507936247151192e-11,
     -4.4076386221506637e-11},
    {9.3843184177572491e-1, -1.1938038100555848e-1, -5.2327258276991923e-2, 7.0693600124489527e-3,
     1.4088882922009516e-3, -2.0334360989935042e-4, -2.4401618935333606e-5, 3.7882571337576724e-6,
     3.0552429958957174e-7, -5.1408538274779723e-8, -2.945161403411927e-9, 5.2782799836483815e-10,
     2.2276751676964601e-11},
};

/* The polynomial of cell `lane`. */
static __device__ __forceinline__ void window_load(double (&terms)[WINDOW_TERMS], int lane) {
    bool mirror = lane >= LOMBSCARGLE_NUFFT_WINDOW / 2;
    const double *from = window_terms[mirror ? LOMBSCARGLE_NUFFT_WINDOW - 1 - lane : lane];
#pragma unroll
    for (int i = 0; i < WINDOW_TERMS; i++) {
        terms[i] = mirror && i % 2 ? -from[i] : from[i];
    }
}

/* The same number but for its last bit, which is set. */
static __device__ __forceinline__ double odd(double x) {
    return __longlong_as_double(__double_as_longlong(x) | 1);
}

static __device__ __forceinline__ double window(const double (&terms)[WINDOW_TERMS], double s) {
    double value = terms[WINDOW_TERMS - 1];
#pragma unroll
    for (int i = WINDOW_TERMS - 2; i >= 0; i--) {
        value = __fma_rn(value, s, terms[i]);
    }
    return odd(value);
}

/* One over the window's Fourier transform at `turns` a cell, at most ⅓. */
static __device__ __forceinline__ double window_inverse(double turns) {
    double at = LOMBSCARGLE_NUFFT_WINDOW * 3.14159265358979323846 * turns;
    double root = sqrt(__fma_rn(-at, at, WINDOW_BETA * WINDOW_BETA));
    return WINDOW_LEAD * root * exp(WINDOW_BETA - root);
}

#endif
