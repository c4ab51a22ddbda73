"""The domains by name."""

from collections.abc import Mapping

from dikast.worlds.domains.charts import Charts
from dikast.worlds.domains.clips import Clips
from dikast.worlds.domains.image_edits import Retouch
from dikast.worlds.domains.image_responses import Pictures
from dikast.worlds.domains.protocol import Domain
from dikast.worlds.domains.scenes import Scenes
from dikast.worlds.domains.text_images import Plates
from dikast.worlds.domains.text_only import Texts

DOMAINS: Mapping[str, Domain] = {
    "scenes": Scenes(),
    "text": Texts(),
    "charts": Charts(),
    "plates": Plates(),
    "clips": Clips(),
    "pictures": Pictures(),
    "retouch": Retouch(),
}
