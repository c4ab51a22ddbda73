"""The domains by name."""

from collections.abc import Mapping

from dikast.worlds.charts import Charts
from dikast.worlds.clips import Clips
from dikast.worlds.pictures import Pictures
from dikast.worlds.plates import Plates
from dikast.worlds.retouch import Retouch
from dikast.worlds.scenes import Scenes
from dikast.worlds.slots import Domain
from dikast.worlds.texts import Texts

DOMAINS: Mapping[str, Domain] = {
    "scenes": Scenes(),
    "text": Texts(),
    "charts": Charts(),
    "plates": Plates(),
    "clips": Clips(),
    "pictures": Pictures(),
    "retouch": Retouch(),
}
