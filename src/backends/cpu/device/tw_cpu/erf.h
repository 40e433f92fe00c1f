// erf of f32 lanes.
#pragma once
#include "tw_cpu/lookup.h"

namespace tw {

// erf(k/4), and coefficients of (x - k/4)^(i+1) at [i][k] for |x - k/4| ≤ 1/8: the last piece ends at 3.875,
// where erf is 1 to 0.72 units in the last place. Minimax with f32 coefficients (Sollya's fpminimax). The
// piece at 0 is odd and gives erf(x) - x, so that its first coefficient's rounding does not count. The last
// piece's last coefficient is raised by 0.005, within 0.75 ulp still: its end, which stands for all that lies
// behind, rounds to 1, so that erf(x) + 1 is 0 for x far below 0.
alignas(64) static constexpr f32 kErfMiddle[16] = {
    0.0f,       0.2763264f, 0.5204999f, 0.71115565f, 0.8427008f, 0.92290014f, 0.96610516f, 0.9866717f,
    0.9953223f, 0.9985373f, 0.999593f,  0.9998994f,  0.9999779f, 0.9999957f,  0.9999993f,  0.9999999f};
alignas(64) static constexpr f32 kErfPieces[6][16] = {
    {0.12837917f, 1.0600141f, 0.8787826f, 0.64293104f, 0.4151075f, 0.23652112f, 0.11893029f, 0.052774996f,
     0.020666983f, 0.007142318f, 0.0021782862f, 0.00058627664f, 0.00013925458f, 2.9188273e-05f,
     5.3975655e-06f, 8.8179877e-07f},
    {0.0f, -0.26500127f, -0.43939963f, -0.48222047f, -0.41509202f, -0.29566523f, -0.17841457f, -0.09237344f,
     -0.041359376f, -0.01609164f, -0.005412901f, -0.0016229443f, -0.00039147877f, -0.00010780905f,
     -5.0950985e-05f, 3.0058013e-06f},
    {-0.37612325f, -0.30916986f, -0.1464622f, 0.02679323f, 0.13837013f, 0.16753525f, 0.1387527f, 0.09015778f,
     0.04822381f, 0.021724975f, 0.008349401f, 0.0027605677f, 0.0007885613f, 0.00019605833f, 4.2927728e-05f,
     7.843829e-06f},
    {0.0f, 0.12660837f, 0.1844956f, 0.15445007f, 0.06655813f, -0.0038030483f, -0.041336406f, -0.04517279f,
     -0.030111484f, -0.015429379f, -0.014218748f, -0.0014369056f, -0.005526964f, 0.0019210422f, 0.0053989743f,
     -0.0010902466f},
    {0.11223686f, 0.0797849f, 0.007322319f, -0.0532022f, -0.069016635f, -0.047111537f, -0.014969073f,
     0.006513589f, 0.0129956305f, 0.010621538f, 0.0061679943f, 0.0027525115f, 0.0010559914f, 0.00030006387f,
     4.2426695e-05f, 2.6622927e-05f},
    {0.0f, -0.025076225f, -0.11000964f, -0.18654007f, 0.11599435f, -0.07912575f, -0.11976036f, -0.11579429f,
     -0.18431525f, -0.15871482f, 0.2358487f, -0.07928557f, 0.19040489f, -0.09438689f, -0.23316668f,
     0.05087735f},
};

TW_INLINE vf32 erf(vf32 x) {
  const vf32 magnitude = at_most(abs(x), vf32(3.8749998f));
  const vf32 shifted = magnitude + 0x1.8p21f;  // rounds to a multiple of 1/4, k in the low bits
  const vf32 from_middle = magnitude - (shifted - 0x1.8p21f);
  const vi32 piece = bits_as<vi32>(shifted);
  // 1/8 itself is a tie, and goes to the even piece.
  const vf32 base = magnitude <= vf32(0.125f) ? magnitude : lookup16(kErfMiddle, piece);
  return with_sign(mad(piecewise(kErfPieces, piece, from_middle), from_middle, base), x);
}

}  // namespace tw
