"""Networks by which one of two models is chosen: of families that teach, at sizes that no dataset has.

    python benchmarks/deciding_networks.py build/deciding [--exported]
    tlp-tvm evaluate OLD NEW datasets/epyc --choice build/deciding/resnet_basic-208.pt,... --out runs/choice

As files, unlike the built-in networks, they have what passes make of constant weights: Winograd's products,
one product for Q, K and V.
"""

from __future__ import annotations

from network_exports import Network, write_missing
from training_networks import BASIC, bert, encoder, resnet

NETWORKS: dict[str, Network] = {
    "resnet_basic-208": resnet(208, [64, 128, 256, 512], **BASIC),
    "resnet_bottleneck-208": resnet(208, [160, 320, 640, 1280]),
    "mobilenet_v2-208": encoder("MobileNetV2", 208),
    "bert-576x144": bert(576, 9, 144),
}
"""By the name of the file."""


if __name__ == "__main__":
    write_missing(NETWORKS, "Write the networks by which models are chosen.")
