"""The settings object refuses what is wrong where it is written, and patches restore."""

import copy
import pickle

import pytest

from tcompile.config import SETTINGS, Config
from tcompile.errors import InvalidArgument, InvalidType


def test_defaults_and_assignment():
    config = Config()
    assert config.recompile_limit == config.cache_size_limit == 8
    assert config.verify is False and config.suppress_errors is False and config.max_instructions > 1000
    assert config.stress_capture is False
    config.cache_size_limit = 3
    assert config.recompile_limit == 3
    del config.recompile_limit
    assert config.cache_size_limit == 8
    assert all(setting.__doc__ for setting in SETTINGS.values())


def test_unknown_names():
    config = Config()
    for act in (
        lambda: setattr(config, "recompile_limt", 1),
        lambda: config.recompile_limt,
        lambda: delattr(config, "recompile_limt"),
        lambda: config.patch(recompile_limt=1),
    ):
        with pytest.raises(InvalidArgument) as error:
            act()
        assert "Did you mean 'recompile_limit'?" in str(error.value) and "verify" in str(error.value)
    assert not hasattr(config, "nothing_like_it")


@pytest.mark.parametrize(
    "name, value",
    [
        ("recompile_limit", True),
        ("recompile_limit", "8"),
        ("recompile_limit", 8.0),
        ("verify", 1),
        ("verify", None),
    ],
)
def test_wrong_types(name, value):
    config = Config()
    with pytest.raises(InvalidType, match=rf"config.{name} must be (int|bool), got {type(value).__name__}"):
        setattr(config, name, value)
    with pytest.raises(InvalidType):
        config.patch(**{name: value})


def test_range():
    with pytest.raises(InvalidArgument, match="at least 1, got 0"):
        Config().recompile_limit = 0


def test_patch_restores_on_exceptions_nests_and_decorates():
    config = Config()
    patch = config.patch(recompile_limit=2, verify=True)
    assert config.recompile_limit == 8
    with pytest.raises(KeyError), patch as inside:
        assert inside is config and config.recompile_limit == 2 and config.verify
        with config.patch(cache_size_limit=1), patch:
            assert config.recompile_limit == 2
        assert config.recompile_limit == 2
        raise KeyError
    assert config.recompile_limit == 8 and not config.verify

    @config.patch(verify=True)
    def f():
        return config.verify

    assert f() is True and config.verify is False


def test_shown():
    config = Config()
    config.recompile_limit = 5
    assert "recompile_limit=5," in repr(config) and "cache_size_limit" not in repr(config)
    assert "<code>5</code>" in config._repr_html_() and "<table>" in config._repr_html_()
    config.reorderable_functions = {test_shown}
    assert "<function" not in config._repr_html_() and "&lt;function" in config._repr_html_()
    assert "patch" in dir(config) and "verify" in dir(config)
    assert pickle.loads(pickle.dumps(config)).recompile_limit == copy.copy(config).recompile_limit == 5
